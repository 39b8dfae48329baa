"""The files of a run: equal for equal number and seed."""

import random
from pathlib import Path

from ingest_tests.fuzz.mutations import SHARES, Change, mutated, mutated_inside, mutated_part
from ingest_tests.fuzz.seeds import seeds

_WRONG_NAME_SHARE = 0.03
_INSIDE_SHARE = 0.8


def write_files(folder: Path, count: int, seed: int) -> None:
    """Write this many mutated files; some with the suffix of another format."""
    sources = seeds()
    others = [content for contents in sources.values() for content in contents]
    suffixes = sorted(SHARES)
    for number in range(count):
        chance = random.Random(f"{seed}-{number}")
        suffix = chance.choices(suffixes, [SHARES[suffix] for suffix in suffixes])[0]
        content = chance.choice(sources[suffix])
        change = _change_for(content) if chance.random() < _INSIDE_SHARE else mutated
        name = chance.choice(suffixes) if chance.random() < _WRONG_NAME_SHARE else suffix
        (folder / f"{number:05}-{suffix}.{name}").write_bytes(change(content, chance, others))


def _change_for(content: bytes) -> Change:
    if content.startswith(b"PK\x03\x04"):
        return mutated_inside
    return mutated_part if content.startswith(b"<?xml") else mutated

"""Near duplicates: a short signature of a text, keys to find candidates by, and how alike two signatures are.

Signatures are made with datasketch; its scheme, its seed and its hash are stated here, so that signatures
from other processes, machines and versions stay comparable.
"""

import functools
import hashlib
from collections.abc import Iterator

from ingest_assets.model.admission import NearDuplicateOptions
from ingest_assets.stages.judging.normal import normal_text, words_of

_SEED = 1
_SCHEME = "affine32"
_VALUE_BYTES = 4
# Shingles per call: a call's memory is this many times the permutations.
_BLOCK = 8192
# Two texts at the threshold share a key with this probability at least.
_RECALL = 0.99


def signature(text: str, options: NearDuplicateOptions) -> bytes | None:
    """The MinHash of a text's shingles, four bytes a permutation; none for a text without words."""
    from datasketch import MinHash

    found = sorted(shingles(text, options.shingle_words))
    if not found:
        return None
    sketch = MinHash(num_perm=options.permutations, seed=_SEED, scheme=_SCHEME, hashfunc=_hash32)
    for start in range(0, len(found), _BLOCK):
        sketch.update_batch(found[start : start + _BLOCK])
    return sketch.hashvalues.astype("<u4").tobytes()


def shingles(text: str, words: int) -> set[str]:
    """All runs of so many words, without order; a shorter text is one shingle."""
    tokens = words_of(normal_text(text))
    if not tokens:
        return set()
    return {" ".join(tokens[at : at + words]) for at in range(max(1, len(tokens) - words + 1))}


def similarity(one: bytes, other: bytes) -> float:
    """The estimated share of shingles that two texts have in common. Both signatures are of one length."""
    pairs = zip(_values(one), _values(other), strict=True)
    return round(sum(left == right for left, right in pairs) / (len(one) // _VALUE_BYTES), 4)


def band_keys(signature: bytes, options: NearDuplicateOptions) -> tuple[int, ...]:
    """Keys to look up candidates by: two texts as alike as the threshold nearly always share one.

    Each fits a signed 64-bit column. A shared key makes a candidate; `similarity` decides.
    """
    rows = rows_per_band(options.threshold, options.permutations)
    size = rows * _VALUE_BYTES
    bands = [signature[at : at + size] for at in range(0, len(signature) - size + 1, size)]
    return tuple(_key(number, band) for number, band in enumerate(bands))


@functools.cache
def rows_per_band(threshold: float, permutations: int) -> int:
    """As many values in a key as still find nearly all texts at the threshold; fewer make more candidates."""
    for rows in range(permutations, 1, -1):
        if 1 - (1 - threshold**rows) ** (permutations // rows) >= _RECALL:
            return rows
    return 1


def _key(number: int, band: bytes) -> int:
    digest = hashlib.blake2b(number.to_bytes(2, "little") + band, digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _hash32(shingle: str) -> int:
    encoded = shingle.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=_VALUE_BYTES).digest(), "little")


def _values(signature: bytes) -> Iterator[bytes]:
    return (signature[at : at + _VALUE_BYTES] for at in range(0, len(signature), _VALUE_BYTES))

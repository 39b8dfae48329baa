"""The whole graph as a command: again with nothing changed, with 1 % changed, and killed half-way.

Every round is a clean build of the corpus as it is then, so that it also is the rebuild that the tables of
the round before, brought up to date, must equal byte for byte. The last build is killed and continued.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from ingest_tests.bench.comparing import Comparison
from ingest_tests.bench.documents import mixed_documents
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.bench.memory_plot import memory_figures
from ingest_tests.bench.whole_runs import WholeRun, attempts, whole_run
from ingest_tests.conftest import Command

QUICK = 0.03
DOCUMENTS = 2000
BATCHES = 4
ROUNDS = 3
CHANGED_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class _Round:
    full: WholeRun
    again: WholeRun
    touched: WholeRun
    built: dict[str, str]
    untouched: dict[str, str]
    updated: dict[str, str]
    attempts: int


def measure(size: Size) -> list[Figure]:
    """Ratios to the full run of the same round; each command is a process of its own, its start included."""
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        files = mixed_documents(folder / "corpus", size.of(DOCUMENTS))
        each = max(1, -(-len(files) // BATCHES))
        rounds: list[_Round] = []
        for number in range(ROUNDS):
            rounds.append(_round(folder / f"home-{number}", folder / "corpus", files, each, number))
        killed = _killed(folder, files, each, rounds[-1])
    return [*_rerun_figures(rounds, len(files)), *killed, *memory_figures(rounds[0].full, len(files))]


def _round(home: Path, corpus: Path, files: Sequence[Path], each: int, number: int) -> _Round:
    command = Command(home)
    full = whole_run(home, "--input", corpus, batch_documents=each)
    built, made = command.hashes(), attempts(home)
    again = whole_run(home, batch_documents=each)
    untouched = command.hashes()
    _change(files, number)
    touched = whole_run(home, batch_documents=each)
    return _Round(full, again, touched, built, untouched, command.hashes(), made)


def _change(files: Sequence[Path], number: int) -> None:
    """One text in a hundred gets another sentence; they lie all over the corpus, so in every batch."""
    texts = [path for path in files if path.suffix in (".md", ".html")]
    step = max(1, round(1 / CHANGED_SHARE))
    for path in texts[number::step] or texts[:1]:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n\nAdded in round {number}: the hives were weighed again.\n")


def _rerun_figures(rounds: Sequence[_Round], count: int) -> list[Figure]:
    again = _ratio(rounds, "again")
    touched = _ratio(rounds, "touched")
    changed = sum(made.built != made.untouched for made in rounds)
    other = sum(old.updated != new.built for old, new in pairwise(rounds))
    return [
        Figure("documents", count, "docs"),
        _full_size(again.figure("nothing changed: ratio", ">=", 50)),
        _inner(rounds, "again", "nothing changed: ratio after the start"),
        Figure("nothing changed: runs that changed a byte", changed, "runs", "=", 0),
        _full_size(touched.figure("1 % changed: ratio", ">=", 20)),
        _inner(rounds, "touched", "1 % changed: ratio after the start"),
        Figure("1 % changed: runs unlike a clean rebuild", other, "runs", "=", 0),
    ]


def _ratio(rounds: Sequence[_Round], name: str) -> Comparison[None, None]:
    naive = tuple(made.full.seconds for made in rounds)
    return Comparison(naive, tuple(getattr(made, name).seconds for made in rounds), None, None)


def _inner(rounds: Sequence[_Round], name: str, label: str) -> Figure:
    naive = tuple(made.full.inner_seconds for made in rounds)
    ours = tuple(max(0.01, getattr(made, name).inner_seconds) for made in rounds)
    return Comparison(naive, ours, None, None).figure(label)


def _full_size(figure: Figure) -> Figure:
    return replace(figure, needs_full_size=True)


def _killed(folder: Path, files: Sequence[Path], each: int, last: _Round) -> list[Figure]:
    """Killed when half of the attempts are made; the corpus is as the last round left it."""
    home, half = folder / "home-killed", last.attempts // 2
    looked = [0.0]

    def is_half_way() -> bool:
        if time.monotonic() < looked[0] + 0.2:
            return False
        looked[0] = time.monotonic()
        return attempts(home) >= half

    before = whole_run(home, "--input", folder / "corpus", batch_documents=each, stop=is_half_way)
    after = whole_run(home, batch_documents=each)
    spent_s = before.seconds + after.seconds
    return [
        Figure("killed: attempts of those uninterrupted", attempts(home) / last.attempts, "times", "<=", 1.1),
        Figure("killed: seconds of those uninterrupted", spent_s / last.full.seconds, "times"),
        Figure("killed: tables unlike uninterrupted ones", _unlike(home, last), "files", "=", 0),
    ]


def _unlike(home: Path, last: _Round) -> int:
    found = Command(home).hashes()
    return sum(found.get(name) != last.updated.get(name) for name in found.keys() | last.updated.keys())

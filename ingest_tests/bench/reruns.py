"""The whole graph again: unchanged, with 1 % changed all over the corpus, and after a kill.

Full runs and reruns take turns in this process, which has run the graph once before: neither pays for
imports, the fork server or the model. The time of a command with its start is reported too. Every round
starts with a clean build of the current corpus, which must be byte-equal to the updated tables of the round
before. The last build is a command that is killed and continued by another.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from ingest_tests.bench.comparing import ROUNDS, Comparison
from ingest_tests.bench.documents import mixed_documents
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.bench.whole_runs import attempts, whole_run
from ingest_tests.conftest import Command

DOCUMENTS = 1000
BATCH_DOCUMENTS = 500  # and a corpus smaller than that is one batch
CHANGED_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class _Round:
    """Seconds of the three runs in one home, and the hashes of all tables after each."""

    full_s: float
    again_s: float
    touched_s: float
    built: dict[str, str]
    untouched: dict[str, str]
    updated: dict[str, str]
    attempts: int


@dataclass(frozen=True, slots=True)
class _Corpus:
    folder: Path
    files: Sequence[Path]

    def run(self, home: Path, *arguments: object) -> float:
        """Return the seconds of `ingest all` in this process."""
        home.mkdir(exist_ok=True)
        started = time.perf_counter()
        Command(home)("all", *arguments, INGEST_BATCHES__MAX_DOCUMENTS=str(BATCH_DOCUMENTS))
        return time.perf_counter() - started

    def change(self, number: int) -> None:
        """Change a sentence in 1 % of the texts, spread over the corpus and so over all batches."""
        texts = [path for path in self.files if path.suffix in (".md", ".html")]
        for path in texts[number :: round(1 / CHANGED_SHARE)]:
            with path.open("a", encoding="utf-8") as file:
                file.write(f"\n\nAdded in round {number}: the hives were weighed again.\n")


def measure(size: Size) -> list[Figure]:
    """Return ratios to the full run of the same round."""
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        files = mixed_documents(folder / "corpus", size.of(DOCUMENTS))
        corpus = _Corpus(folder / "corpus", files)
        mixed_documents(folder / "first", 4)
        corpus.run(folder / "warm", "--input", folder / "first")
        rounds = [_round(folder / f"home-{number}", corpus, number) for number in range(ROUNDS)]
        commands = _commands(folder, corpus, rounds[-1])
    return [*_figures(rounds, len(files)), *commands]


def _round(home: Path, corpus: _Corpus, number: int) -> _Round:
    command = Command(home)
    full_s = corpus.run(home, "--input", corpus.folder)
    built, attempted = command.hashes(), attempts(home)
    again_s, untouched = corpus.run(home), command.hashes()
    corpus.change(number)
    touched_s = corpus.run(home)
    return _Round(full_s, again_s, touched_s, built, untouched, command.hashes(), attempted)


def _figures(rounds: Sequence[_Round], count: int) -> list[Figure]:
    full = tuple(round_.full_s for round_ in rounds)
    again = Comparison(full, tuple(round_.again_s for round_ in rounds), None, None)
    touched = Comparison(full, tuple(round_.touched_s for round_ in rounds), None, None)
    changed = sum(round_.built != round_.untouched for round_ in rounds)
    other = sum(old.updated != new.built for old, new in pairwise(rounds))
    return [
        _full_size(again.figure(f"nothing of {count:,} changed: ratio", ">=", 50)),
        Figure("nothing changed: runs that changed a byte", changed, "runs", "=", 0),
        # A second of each run is spent on opening Dagster's own files.
        _full_size(touched.figure(f"1 % of {count:,} changed: ratio", ">=", 12)),
        Figure("1 % changed: runs unlike a clean rebuild", other, "runs", "=", 0),
    ]


def _full_size(figure: Figure) -> Figure:
    return replace(figure, needs_full_size=True)


def _commands(folder: Path, corpus: _Corpus, last: _Round) -> list[Figure]:
    """Time a command killed half-way, one that continues, and one that has nothing to do."""
    home, half = folder / "home-killed", last.attempts // 2
    before = whole_run(
        home, "--input", corpus.folder, batch_documents=BATCH_DOCUMENTS, stop=lambda: attempts(home) >= half
    )
    attempted = attempts(home)
    after = whole_run(home, batch_documents=BATCH_DOCUMENTS)
    work, hashes = attempts(home), Command(home).hashes()
    names = sorted(hashes.keys() | last.updated.keys())
    unlike = [name for name in names if hashes.get(name) != last.updated.get(name)]
    again = whole_run(home, batch_documents=BATCH_DOCUMENTS)
    share = Figure("killed: attempts of those uninterrupted", work / last.attempts, "times", "<=", 1.1)
    note = f"finished attempts: {attempted:,} when killed, {work:,} in total, of {last.attempts:,}"
    return [
        replace(share, note=note),
        Figure(
            "killed: tables unlike uninterrupted ones", len(unlike), "files", "=", 0, note=" ".join(unlike)
        ),
        Figure("killed and resumed as commands", before.seconds + after.seconds, "s"),
        Figure("nothing changed, as a command", again.seconds, "s"),
    ]

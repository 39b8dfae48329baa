"""500 small documents in one batch against one Dagster run per document, with the same stages.

The naive way is this graph in batches of one: the same stages, rows and instance, a run for each document. It
is linear, so it is measured on a few documents. Both ways run in this process, which has run the graph once
before, so neither pays for imports, the fork server or the model.
"""

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from ingest_tests.bench.comparing import Comparison
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.conftest import Command

DOCUMENTS = 500
SAMPLE = 6  # documents of the naive way, in each round
ROUNDS = 3
_COMPARED = {
    "chunks": ["chunk_id", "contextualized", "tokens"],
    "embeddings/dense": ["chunk_id", "vector"],
    "embeddings/lexical": ["chunk_id", "terms", "counts"],
}


def measure(size: Size) -> list[Figure]:
    """Time all documents in turns, each round in new homes."""
    count = size.of(DOCUMENTS)
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        files = _notes(folder / "all", count)
        sample = _notes(
            folder / "few" / "all", min(max(2, size.of(SAMPLE)), count)
        )  # by the same ids: `all:00001.md`
        _run(folder / "warm", sample[0].parent, 500)
        rounds = [_round(folder, number, files, sample) for number in range(ROUNDS)]
    naive, ours, other = zip(*rounds, strict=True)
    found = Comparison(naive, ours, None, None).figure(f"{count} documents: ratio", ">=", 20)
    scaled = replace(found, needs_full_size=True, note=f"{found.note}, scaled up from {len(sample)} runs")
    return [scaled, Figure("documents with other rows", max(other), "docs", "=", 0)]


def _round(
    folder: Path, number: int, files: Sequence[Path], sample: Sequence[Path]
) -> tuple[float, float, int]:
    apart, together = folder / f"apart-{number}", folder / f"together-{number}"
    few_s = _run(apart, sample[0].parent, 1)
    ours_s = _run(together, files[0].parent, 500)
    return few_s / len(sample) * len(files), ours_s, _different(apart, together)


def _run(home: Path, folder: Path, batch_documents: int) -> float:
    home.mkdir()
    command = Command(home)
    started = time.perf_counter()
    said = command("all", "--input", folder, "--json", INGEST_BATCHES__MAX_DOCUMENTS=str(batch_documents))
    seconds = time.perf_counter() - started
    assert json.loads(said.stdout)["failures"] == []
    return seconds


def _different(apart: Path, together: Path) -> int:
    """Count documents of the sample whose chunks, vectors or terms differ from those of the one batch."""
    wrong: set[Any] = set()
    for asset, columns in _COMPARED.items():
        mine, all_of_them = (_rows(home, asset, columns) for home in (together, apart))
        wrong |= {doc_id for doc_id, rows in all_of_them.items() if mine.get(doc_id) != rows}
    return len(wrong)


def _rows(home: Path, asset: str, columns: Sequence[str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    frame = pl.read_parquet(home / "data" / asset / "*.parquet", columns=["doc_id", *columns])
    for doc_id, *values in frame.iter_rows():
        found.setdefault(doc_id, []).append(values)
    return found


def _notes(folder: Path, count: int) -> list[Path]:
    """Write Markdown files of a few lines."""
    folder.mkdir(parents=True)
    for number in range(count):
        text = f"Hive {number} was weighed in week {number % 52}: it gained {number % 7} kilograms of honey."
        (folder / f"{number:05}.md").write_text(f"# Note {number}\n\n{text}\n\nThe queen was seen.\n")
    return sorted(folder.glob("*.md"))

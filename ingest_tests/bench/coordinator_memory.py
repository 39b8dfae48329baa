"""The coordinator's memory over a full run of 2,000 documents in four batches: flat after the first."""

import tempfile
from pathlib import Path

from ingest_tests.bench.documents import mixed_documents
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.bench.memory_plot import memory_figures
from ingest_tests.bench.whole_runs import whole_run

DOCUMENTS = 2000
BATCHES = 4


def measure(size: Size) -> list[Figure]:
    """Sample the memory of the command's process 20 times a second; batch one loads the models."""
    with tempfile.TemporaryDirectory() as folder:
        corpus, count = Path(folder) / "corpus", size.of(DOCUMENTS)
        mixed_documents(corpus, count, lengths=(1,))
        run = whole_run(
            Path(folder) / "home", "--input", corpus, batch_documents=max(1, -(-count // BATCHES))
        )
    assert run.said["documents"] == count
    return memory_figures(run, count)

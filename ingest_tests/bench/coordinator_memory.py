"""The coordinator's memory over a full run of 2,000 documents in four batches: flat after the first one."""

import tempfile
from pathlib import Path

from ingest_tests.bench.documents import mixed_documents
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.bench.memory_plot import memory_figures
from ingest_tests.bench.whole_runs import whole_run

DOCUMENTS = 2000
BATCHES = 4


def measure(size: Size) -> list[Figure]:
    """Resident memory of the command's own process, twenty times a second; models are loaded in batch one."""
    with tempfile.TemporaryDirectory() as folder:
        corpus, count = Path(folder) / "corpus", size.of(DOCUMENTS)
        mixed_documents(corpus, count, lengths=(1,))
        run = whole_run(
            Path(folder) / "home", "--input", corpus, batch_documents=max(1, -(-count // BATCHES))
        )
    assert run.said["documents"] == count
    return memory_figures(run, count)

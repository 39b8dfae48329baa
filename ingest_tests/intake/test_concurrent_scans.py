"""The sensor and the command line may look at the same folder at the same moment."""

import subprocess
import sys
from pathlib import Path

from ingest_tests.intake.conftest import Watched

SCANNER = """
import sys
from pathlib import Path
from ingest_assets.intake import watch
from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.scan import ScanLimits
from ingest_assets.model.options import BatchLimits
print("ready", flush=True)
sys.stdin.readline()
where = sys.argv[1]
ledger = Ledger(where if "://" in where else Path(where))
limits = ScanLimits(BatchLimits(max_documents=7))
print(watch.scan(ledger, [watch.WatchedFolder("docs", Path(sys.argv[2]))], limits).new)
"""


def scan_at_once(ledger: Path | str, folder: Path, processes: int) -> list[int]:
    """How many files each of several real processes took for new."""
    command = [sys.executable, "-c", SCANNER, str(ledger), str(folder)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    try:
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in started:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        return [int(process.communicate(timeout=60)[0]) for process in started]
    finally:
        for process in started:
            process.kill()


def test_two_first_scans_at_once_take_every_file_in_once(tmp_path: Path, ledger_is_at: Path | str) -> None:
    """The ledger itself is new, too: both make it."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number:02}.md").write_text(str(number))

    new = scan_at_once(ledger_is_at, folder, 3)

    watched = Watched(tmp_path, ledger_is_at)
    documents = watched.ledger.documents()
    assert sum(new) == 30
    assert [document.seq for document in documents] == list(range(1, 31))
    assert len({document.doc_id for document in documents}) == 30
    assert len(watched.ledger.batches()) == 5
    assert max(watched.ledger.batches().values()) == 5

"""Whatever happens to a folder, the ledger ends up knowing exactly what is there."""

import hashlib
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest_assets.intake.ledger import Document
from ingest_tests.intake.conftest import Watched

NAMES = ("a.md", "b.md", "sub/c.md", "sub/deep/d.md", "é.md", "A.md")
write = st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from(["one", "two", "three", ""]))
delete = st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just(""))
scans = st.tuples(st.just("scan"), st.just(""), st.just(""))
histories = st.lists(write | write | delete | scans, max_size=25)


def on_disk(folder: Path) -> dict[str, str]:
    """Path and hash of every file."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def moved(before: dict[str, Document], after: dict[str, Document]) -> set[str]:
    """The batches of documents that came, went or have other bytes."""

    def state(document: Document | None) -> str | None:
        return None if document is None or document.is_deleted() else document.content_hash

    return {document.batch for path, document in after.items() if state(before.get(path)) != state(document)}


def check_scan(watched: Watched) -> None:
    """Scan, and hold the ledger against the folder and against what it said before."""
    before, revisions = watched.known(), watched.ledger.batches()

    report = watched.scan(max_documents=2)

    after, now = watched.known(), watched.ledger.batches()
    grown = {batch for batch in now if now[batch] != revisions.get(batch)}
    assert watched.living() == on_disk(watched.folder)
    assert {path: (d.batch, d.seq) for path, d in before.items()}.items() <= {
        path: (d.batch, d.seq) for path, d in after.items()
    }.items()
    assert [d.seq for d in watched.ledger.documents()] == list(range(1, len(after) + 1))
    assert grown == report.batches == moved(before, after)
    assert all(now[batch] > max(revisions.values(), default=0) for batch in grown)
    assert report.has_changes() is bool(grown)


@settings(max_examples=40, deadline=None)
@given(histories)
def test_the_ledger_follows_any_history_of_a_folder(history: list[tuple[str, str, str]]) -> None:
    """Living documents are the folder's files; homes and numbers are for life; revisions mean change."""
    with tempfile.TemporaryDirectory() as root:
        watched = Watched(Path(root))
        for action, name, content in [*history, ("scan", "", "")]:
            if action == "write":
                watched.write(name, content)
            elif action == "delete":
                (watched.folder / name).unlink(missing_ok=True)
            else:
                watched.now += 60
                check_scan(watched)
        watched.ledger.close()

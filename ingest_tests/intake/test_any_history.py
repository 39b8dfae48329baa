"""After any history of its folders, the ledger matches the files exactly."""

import hashlib
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.intake.ledger import Document
from ingest_tests.intake.conftest import CHANGES, Watched, counts

NAMES = ("docs/a.md", "docs/b.md", "docs/sub/c.md", "docs/é.md", "docs/A.md", "more/a.md", "more/sub/d.md")
names = st.sampled_from(NAMES)
write = st.tuples(st.just("write"), names, st.sampled_from(["one", "two", "three", ""]))
move = st.tuples(st.just("move"), names, names)
delete = st.tuples(st.just("delete"), names, st.just(""))
scans = st.tuples(st.just("scan"), st.just(""), st.just(""))
histories = st.lists(write | write | move | delete | scans, max_size=30)

BySeq = dict[int, Document]


def on_disk(root: Path) -> dict[str, str]:
    """Return id and hash of every file."""
    files = (path for name in ("docs", "more") for path in (root / name).rglob("*") if path.is_file())
    return {
        path.relative_to(root).as_posix().replace("/", ":", 1): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def state(document: Document | None) -> tuple[str, str] | None:
    """Return what a document's rows depend on."""
    is_living = document is not None and not document.is_deleted()
    return (document.doc_id, document.content_hash) if is_living else None


def living(known: BySeq) -> dict[str, str]:
    """Return id and hash of the documents that are not deleted."""
    return dict(found for found in map(state, known.values()) if found)


def touched(before: BySeq, after: BySeq) -> set[str]:
    """Return the batches of documents that appeared, disappeared, moved, were replaced or changed."""
    changed = {d.batch for seq, d in after.items() if state(before.get(seq)) != state(d)}
    return changed | {d.batch for seq, d in before.items() if seq not in after}


def check_batches(before: BySeq, after: BySeq, moved: int) -> None:
    """Batch and number never change, also after a move; only deleted documents are replaced."""
    kept = before.keys() & after.keys()
    movers = {seq for seq in kept if before[seq].doc_id != after[seq].doc_id}
    stayed = {d.doc_id: d.seq for d in before.values() if not d.is_deleted()}
    new = sorted(after.keys() - before.keys())
    assert all(before[seq].batch == after[seq].batch for seq in kept)
    assert len(movers) == moved
    assert all(before[seq].content_hash == after[seq].content_hash for seq in movers)
    assert all(d.seq == stayed[d.doc_id] for d in after.values() if state(d) and d.doc_id in stayed)
    assert {before[seq].doc_id for seq in before.keys() - kept} <= {after[seq].doc_id for seq in movers}
    assert all(before[seq].is_deleted() for seq in before.keys() - kept)
    assert new == list(range(max(before, default=0) + 1, max(before, default=0) + 1 + len(new)))
    deleted = {d.content_hash for d in after.values() if d.is_deleted()}
    assert not deleted & {after[seq].content_hash for seq in new}, "a move was missed"


def check_scan(watched: Watched) -> None:
    """Scan, and compare the ledger with the folders and with its state before."""
    before, revisions = {d.seq: d for d in watched.ledger.documents()}, watched.ledger.batches()
    preview = watched.preview(max_documents=2)

    report = watched.scan(max_documents=2)

    after, now = {d.seq: d for d in watched.ledger.documents()}, watched.ledger.batches()
    grown = {batch for batch in now if now[batch] != revisions.get(batch)}
    assert report == preview
    assert living(after) == on_disk(watched.folder.parent)
    check_batches(before, after, report.moved)
    assert grown == report.batches == touched(before, after)
    assert all(now[batch] > max(revisions.values(), default=0) for batch in grown)
    assert bool(counts(report).keys() & CHANGES) is bool(grown)


def act(watched: Watched, action: str, name: str, argument: str) -> None:
    """Do one step of a history."""
    path = watched.folder.parent / name
    if action == "write":
        watched.write(f"../{name}", argument)
    elif action == "delete":
        path.unlink(missing_ok=True)
    elif action == "move" and path.is_file():
        target = watched.folder.parent / argument
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
    elif action == "scan":
        watched.now += 60
        check_scan(watched)


@given(histories)
def test_the_ledger_follows_any_history_of_its_folders(history: list[tuple[str, str, str]]) -> None:
    """Documents match the files; batches and numbers never change; a new revision means a change."""
    with tempfile.TemporaryDirectory() as root:
        watched = Watched(Path(root))
        watched.also("more")
        for action, name, argument in [*history, ("scan", "", "")]:
            act(watched, action, name, argument)
        watched.ledger.close()

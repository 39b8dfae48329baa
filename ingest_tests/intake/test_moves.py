"""A moved file is the same document: same batch, same number, another id."""

import os
import shutil
from pathlib import Path

import pytest

from ingest_assets.intake.folders import scan as scan_module
from ingest_tests.intake.conftest import NOW, Watched, counts

Home = tuple[str, int]


def batch_and_seq(watched: Watched) -> dict[str, Home]:
    """Return batch and number of every document that is not deleted."""
    return {d.doc_id: (d.batch, d.seq) for d in watched.ledger.documents() if not d.is_deleted()}


def ids(watched: Watched) -> list[str]:
    """Return every document of the ledger by number, including deleted ones."""
    return [document.doc_id for document in watched.ledger.documents()]


def move(watched: Watched, name: str, target: str) -> None:
    """Rename a file as `mv` does, with its time."""
    to = watched.folder / target
    to.parent.mkdir(parents=True, exist_ok=True)
    (watched.folder / name).replace(to)


def test_a_renamed_file_keeps_its_batch_and_number(watched: Watched) -> None:
    """It is not new or deleted, and its batch runs again: rows need the new id."""
    watched.write("a.md")
    watched.write("b.md")
    watched.scan()
    before, revisions = batch_and_seq(watched), watched.ledger.batches()
    move(watched, "a.md", "sub/z.md")

    report = watched.scan()

    assert counts(report) == {"moved": 1, "unchanged": 1}
    assert report.batches == {"2024-05-01-0001"}
    assert batch_and_seq(watched) == {"docs:sub/z.md": before["docs:a.md"], "docs:b.md": before["docs:b.md"]}
    assert ids(watched) == ["docs:sub/z.md", "docs:b.md"]
    assert watched.known()["sub/z.md"].path == "sub/z.md"
    assert watched.ledger.batches()["2024-05-01-0001"] > revisions["2024-05-01-0001"]
    assert counts(watched.scan()) == {"unchanged": 2}


@pytest.mark.parametrize(("source", "target"), [("docs", "more"), ("more", "docs")])
def test_a_file_can_move_to_another_watched_folder(watched: Watched, source: str, target: str) -> None:
    """Whichever of the two is scanned first."""
    watched.also("more")
    watched.write(f"../{source}/a.md")
    watched.write(f"../{target}/b.md")
    watched.scan()
    before = batch_and_seq(watched)
    move(watched, f"../{source}/a.md", f"../{target}/deep/a.md")

    report = watched.scan()

    assert counts(report) == {"moved": 1, "unchanged": 1}
    assert batch_and_seq(watched)[f"{target}:deep/a.md"] == before[f"{source}:a.md"]
    assert {d.source for d in watched.ledger.documents()} == {target}


def test_a_move_is_recognised_when_the_new_file_was_too_young(watched: Watched) -> None:
    """The old path is empty in one scan, the new one is entered in the next."""
    watched.write("a.md")
    watched.scan()
    before = batch_and_seq(watched)
    move(watched, "a.md", "z.md")
    os.utime(watched.folder / "z.md", (NOW, NOW))
    watched.now = NOW + 1

    early = watched.scan(settle_seconds=2)
    watched.now = NOW + 3
    late = watched.scan(settle_seconds=2)

    assert counts(early) == {"deleted": 1, "waiting": 1}
    assert counts(late) == {"moved": 1}
    assert batch_and_seq(watched) == {"docs:z.md": before["docs:a.md"]}


def test_a_move_is_recognised_when_hashing_took_too_long_at_first(watched: Watched) -> None:
    """The time limit allows one of two files."""
    watched.write("a.md")
    watched.scan()
    before = batch_and_seq(watched)
    move(watched, "a.md", "z.md")
    watched.write("new.md")

    short = watched.scan(budget_seconds=1e-9)
    rest = watched.scan()

    assert counts(short) == {"new": 1, "deleted": 1, "waiting": 1}
    assert counts(rest) == {"moved": 1, "unchanged": 1}
    assert batch_and_seq(watched)["docs:z.md"] == before["docs:a.md"]


def test_two_files_that_swap_paths_are_two_changed_files(watched: Watched) -> None:
    """None is new or deleted; each path keeps its batch."""
    watched.write("a.md", "one")
    watched.write("b.md", "two")
    watched.scan()
    before = batch_and_seq(watched)
    move(watched, "a.md", "kept")
    move(watched, "b.md", "a.md")
    move(watched, "kept", "b.md")

    report = watched.scan()

    assert counts(report) == {"changed": 2}
    assert batch_and_seq(watched) == before


def test_a_file_that_replaces_another_is_a_changed_and_a_deleted_one(watched: Watched) -> None:
    """Its new path belongs to a document that is not deleted."""
    watched.write("a.md", "one")
    watched.write("b.md", "two")
    watched.scan()
    before = batch_and_seq(watched)
    move(watched, "b.md", "a.md")

    report = watched.scan()

    assert counts(report) == {"changed": 1, "deleted": 1}
    assert batch_and_seq(watched) == {"docs:a.md": before["docs:a.md"]}


def test_a_copy_whose_original_is_deleted_before_the_next_scan_is_a_move(watched: Watched) -> None:
    """They cannot be distinguished; `mv` to another disk does exactly this."""
    path = watched.write("a.md")
    watched.scan()
    before = batch_and_seq(watched)
    shutil.copyfile(path, watched.folder / "b.md")
    path.unlink()

    assert counts(watched.scan()) == {"moved": 1}
    assert batch_and_seq(watched) == {"docs:b.md": before["docs:a.md"]}


def test_a_copy_scanned_beside_its_original_is_a_separate_document(watched: Watched) -> None:
    """Deleting the original later deletes the original."""
    path = watched.write("a.md")
    watched.scan()
    shutil.copyfile(path, watched.folder / "b.md")

    copied = watched.scan()
    path.unlink()
    deleted = watched.scan()

    assert counts(copied) == {"new": 1, "unchanged": 1}
    assert counts(deleted) == {"deleted": 1, "unchanged": 1}
    assert batch_and_seq(watched) == {"docs:b.md": ("2024-05-01-0002", 2)}


def test_a_file_that_moves_and_changes_is_another_document(watched: Watched) -> None:
    """Only its hash could identify it."""
    watched.write("a.md", "one")
    watched.scan()
    move(watched, "a.md", "b.md")
    watched.write("b.md", "two")

    assert counts(watched.scan()) == {"new": 1, "deleted": 1}


def test_a_file_in_an_unmounted_folder_does_not_move(watched: Watched) -> None:
    """The copy elsewhere is another document."""
    more = watched.also("more")
    watched.write("../more/a.md", "same")
    watched.scan()
    before = batch_and_seq(watched)
    more.rename(more.with_name("away"))
    watched.write("b.md", "same")

    report = watched.scan()

    assert counts(report) == {"new": 1}
    assert batch_and_seq(watched)["more:a.md"] == before["more:a.md"]


def test_a_preview_recognises_moves(watched: Watched) -> None:
    """As the scan does, without writing."""
    watched.also("more")
    for name in ("a.md", "b.md", "../more/c.md"):
        watched.write(name)
    watched.scan()
    move(watched, "a.md", "../more/a.md")
    move(watched, "../more/c.md", "c.md")
    watched.write("new.md")
    before = (watched.ledger.documents(), watched.ledger.batches())

    preview = watched.preview()

    assert counts(preview) == {"new": 1, "moved": 2, "unchanged": 1}
    assert (watched.ledger.documents(), watched.ledger.batches()) == before
    assert watched.scan() == preview


def test_a_failed_scan_changes_nothing(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """A half-moved document would be lost."""
    watched.write("a.md")
    watched.write("b.md")
    watched.scan()
    before = (watched.ledger.documents(), watched.ledger.batches())
    move(watched, "a.md", "z.md")
    (watched.folder / "b.md").unlink()

    def breaks(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(scan_module, "bump", breaks)
        with pytest.raises(KeyboardInterrupt):
            watched.scan()

    assert (watched.ledger.documents(), watched.ledger.batches()) == before
    assert counts(watched.scan()) == {"moved": 1, "deleted": 1}


def test_a_folder_of_many_files_moves_at_once(watched: Watched) -> None:
    """More than fit into one query."""
    for number in range(1200):
        watched.write(f"old/{number}.md")
    watched.scan(max_documents=100)
    before = batch_and_seq(watched)
    Path(watched.folder / "old").rename(watched.folder / "new")

    report = watched.scan(max_documents=100)

    assert counts(report) == {"moved": 1200}
    assert batch_and_seq(watched) == {doc_id.replace("old/", "new/"): home for doc_id, home in before.items()}

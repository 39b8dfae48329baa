"""A file that moves is the document it was: same batch, same number, another id."""

import os
import shutil
from pathlib import Path

import pytest

from ingest_assets.intake.folders import scan as scan_module
from ingest_tests.intake.conftest import NOW, Watched, counts

Home = tuple[str, int]


def homes(watched: Watched) -> dict[str, Home]:
    """Batch and number of every document that is not deleted."""
    return {d.doc_id: (d.batch, d.seq) for d in watched.ledger.documents() if not d.is_deleted()}


def ids(watched: Watched) -> list[str]:
    """Every document the ledger knows, deleted ones included, by number."""
    return [document.doc_id for document in watched.ledger.documents()]


def move(watched: Watched, name: str, target: str) -> None:
    """Rename a file, as `mv` does: its time goes with it."""
    to = watched.folder / target
    to.parent.mkdir(parents=True, exist_ok=True)
    (watched.folder / name).replace(to)


def test_a_renamed_file_keeps_its_batch_and_number(watched: Watched) -> None:
    """It is neither new nor deleted, and its batch runs again: the rows must say its new id."""
    watched.write("a.md")
    watched.write("b.md")
    watched.scan()
    before, revisions = homes(watched), watched.ledger.batches()
    move(watched, "a.md", "sub/z.md")

    report = watched.scan()

    assert counts(report) == {"moved": 1, "unchanged": 1}
    assert report.batches == {"2024-05-01-0001"}
    assert homes(watched) == {"docs:sub/z.md": before["docs:a.md"], "docs:b.md": before["docs:b.md"]}
    assert ids(watched) == ["docs:sub/z.md", "docs:b.md"]
    assert watched.known()["sub/z.md"].path == "sub/z.md"
    assert watched.ledger.batches()["2024-05-01-0001"] > revisions["2024-05-01-0001"]
    assert counts(watched.scan()) == {"unchanged": 2}


@pytest.mark.parametrize(("source", "target"), [("docs", "more"), ("more", "docs")])
def test_a_file_may_move_to_another_watched_folder(watched: Watched, source: str, target: str) -> None:
    """Whichever of the two is looked at first."""
    watched.also("more")
    watched.write(f"../{source}/a.md")
    watched.write(f"../{target}/b.md")
    watched.scan()
    before = homes(watched)
    move(watched, f"../{source}/a.md", f"../{target}/deep/a.md")

    report = watched.scan()

    assert counts(report) == {"moved": 1, "unchanged": 1}
    assert homes(watched)[f"{target}:deep/a.md"] == before[f"{source}:a.md"]
    assert {d.source for d in watched.ledger.documents()} == {target}


def test_a_move_is_recognised_when_the_file_had_to_settle_first(watched: Watched) -> None:
    """The old place is empty in one look, the new one is taken in by the next."""
    watched.write("a.md")
    watched.scan()
    before = homes(watched)
    move(watched, "a.md", "z.md")
    os.utime(watched.folder / "z.md", (NOW, NOW))
    watched.now = NOW + 1

    early = watched.scan(settle_seconds=2)
    watched.now = NOW + 3
    late = watched.scan(settle_seconds=2)

    assert counts(early) == {"deleted": 1, "waiting": 1}
    assert counts(late) == {"moved": 1}
    assert homes(watched) == {"docs:z.md": before["docs:a.md"]}


def test_a_move_is_recognised_when_hashing_took_too_long_at_first(watched: Watched) -> None:
    """Of two files the budget allows one."""
    watched.write("a.md")
    watched.scan()
    before = homes(watched)
    move(watched, "a.md", "z.md")
    watched.write("new.md")

    short = watched.scan(budget_seconds=1e-9)
    rest = watched.scan()

    assert counts(short) == {"new": 1, "deleted": 1, "waiting": 1}
    assert counts(rest) == {"moved": 1, "unchanged": 1}
    assert homes(watched)["docs:z.md"] == before["docs:a.md"]


def test_two_files_that_change_places_are_two_changed_files(watched: Watched) -> None:
    """Nothing is new and nothing is gone; each place keeps its home."""
    watched.write("a.md", "one")
    watched.write("b.md", "two")
    watched.scan()
    before = homes(watched)
    move(watched, "a.md", "kept")
    move(watched, "b.md", "a.md")
    move(watched, "kept", "b.md")

    report = watched.scan()

    assert counts(report) == {"changed": 2}
    assert homes(watched) == before


def test_a_file_that_replaces_another_is_a_changed_and_a_deleted_one(watched: Watched) -> None:
    """The place it takes belongs to a document that lives."""
    watched.write("a.md", "one")
    watched.write("b.md", "two")
    watched.scan()
    before = homes(watched)
    move(watched, "b.md", "a.md")

    report = watched.scan()

    assert counts(report) == {"changed": 1, "deleted": 1}
    assert homes(watched) == {"docs:a.md": before["docs:a.md"]}


def test_a_copy_whose_original_is_deleted_before_the_next_look_is_a_move(watched: Watched) -> None:
    """Nobody can tell them apart; `mv` to another disk does exactly this."""
    path = watched.write("a.md")
    watched.scan()
    before = homes(watched)
    shutil.copyfile(path, watched.folder / "b.md")
    path.unlink()

    assert counts(watched.scan()) == {"moved": 1}
    assert homes(watched) == {"docs:b.md": before["docs:a.md"]}


def test_a_copy_that_was_seen_beside_its_original_is_a_document_of_its_own(watched: Watched) -> None:
    """Deleting the original later deletes the original."""
    path = watched.write("a.md")
    watched.scan()
    shutil.copyfile(path, watched.folder / "b.md")

    copied = watched.scan()
    path.unlink()
    deleted = watched.scan()

    assert counts(copied) == {"new": 1, "unchanged": 1}
    assert counts(deleted) == {"deleted": 1, "unchanged": 1}
    assert homes(watched) == {"docs:b.md": ("2024-05-01-0002", 2)}


def test_a_file_that_moves_and_changes_is_another_document(watched: Watched) -> None:
    """The hash is all there is to know it by."""
    watched.write("a.md", "one")
    watched.scan()
    move(watched, "a.md", "b.md")
    watched.write("b.md", "two")

    assert counts(watched.scan()) == {"new": 1, "deleted": 1}


def test_a_file_that_is_only_out_of_sight_does_not_move(watched: Watched) -> None:
    """Its folder is not mounted; the copy elsewhere is another document."""
    more = watched.also("more")
    watched.write("../more/a.md", "same")
    watched.scan()
    before = homes(watched)
    more.rename(more.with_name("away"))
    watched.write("b.md", "same")

    report = watched.scan()

    assert counts(report) == {"new": 1}
    assert homes(watched)["more:a.md"] == before["more:a.md"]


def test_a_preview_recognises_what_moved(watched: Watched) -> None:
    """As the scan does, with nothing written."""
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


def test_a_scan_that_breaks_off_changes_nothing(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document between two places would be in neither."""
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
    """More than one query may name."""
    for number in range(1200):
        watched.write(f"old/{number}.md")
    watched.scan(max_documents=100)
    before = homes(watched)
    Path(watched.folder / "old").rename(watched.folder / "new")

    report = watched.scan(max_documents=100)

    assert counts(report) == {"moved": 1200}
    assert homes(watched) == {doc_id.replace("old/", "new/"): home for doc_id, home in before.items()}

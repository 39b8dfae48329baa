"""A file that moves is the document it was: same batch, same number, another id."""

import os
import shutil
from pathlib import Path

import pytest

from ingest_assets.intake import scan as scan_module
from ingest_assets.intake.ledger import bump
from ingest_assets.intake.schema import documents
from ingest_tests.intake.conftest import NOW, Watched
from ingest_tests.intake.test_scan import counts

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
    assert report.has_changes()
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


def test_two_files_that_change_places_while_away_keep_their_homes(watched: Watched) -> None:
    """Each takes the id that the other one had: no order of renaming them one by one would do."""
    watched.write("a.md", "one")
    watched.write("b.md", "two")
    watched.scan()
    before = homes(watched)
    for name in ("a.md", "b.md"):
        (watched.folder / name).unlink()
    watched.scan()
    watched.write("a.md", "two")
    watched.write("b.md", "one")

    report = watched.scan()

    assert counts(report) == {"moved": 2}
    assert homes(watched) == {"docs:a.md": before["docs:b.md"], "docs:b.md": before["docs:a.md"]}


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


def test_what_was_deleted_long_ago_gives_way_to_what_moves_to_its_place(watched: Watched) -> None:
    """Both batches run again: one may still hold rows of that id."""
    watched.write("a.md", "one")
    watched.write("b.md", "two")
    watched.scan(max_documents=1)
    before = homes(watched)
    (watched.folder / "a.md").unlink()
    watched.scan()
    move(watched, "b.md", "a.md")

    report = watched.scan()

    assert counts(report) == {"moved": 1}
    assert report.batches == {"2024-05-01-0001", "2024-05-01-0002"}
    assert homes(watched) == {"docs:a.md": before["docs:b.md"]}
    assert ids(watched) == ["docs:a.md"]


def test_a_document_whose_place_was_taken_moves_on_when_its_bytes_come_back(watched: Watched) -> None:
    """It gives way only when nobody wants it."""
    watched.write("a.md", "one")
    watched.write("b.md", "two")
    watched.scan()
    before = homes(watched)
    (watched.folder / "a.md").unlink()
    watched.scan()
    move(watched, "b.md", "a.md")
    watched.write("c.md", "one")

    report = watched.scan()

    assert counts(report) == {"moved": 2}
    assert homes(watched) == {"docs:a.md": before["docs:b.md"], "docs:c.md": before["docs:a.md"]}


def test_a_new_file_at_a_place_whose_document_moved_on_is_new(watched: Watched) -> None:
    """The bytes that were there are elsewhere now, and they have the home."""
    watched.write("a.md", "one")
    watched.scan()
    before = homes(watched)
    (watched.folder / "a.md").unlink()
    watched.scan()
    watched.write("a.md", "other")
    watched.write("b.md", "one")

    report = watched.scan()

    assert counts(report) == {"new": 1, "moved": 1}
    assert homes(watched) == {"docs:a.md": ("2024-05-01-0002", 2), "docs:b.md": before["docs:a.md"]}


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


def test_of_two_equal_files_the_one_that_moves_is_the_one_that_is_gone(watched: Watched) -> None:
    """The other one stays where it is."""
    watched.write("a.md", "same")
    watched.write("b.md", "same")
    watched.scan()
    before = homes(watched)
    move(watched, "b.md", "0.md")

    report = watched.scan()

    assert counts(report) == {"moved": 1, "unchanged": 1}
    assert homes(watched) == {"docs:a.md": before["docs:a.md"], "docs:0.md": before["docs:b.md"]}


@pytest.mark.parametrize("content", ["same", ""], ids=["text", "empty"])
def test_equal_files_that_move_together_are_paired_in_order(watched: Watched, content: str) -> None:
    """By number and by path, so that every scan would say the same; the third has no document to be."""
    watched.write("b.md", content)
    watched.write("a.md", content)
    watched.scan()
    for old, new in (("a.md", "z.md"), ("b.md", "y.md")):
        move(watched, old, new)
    watched.write("zz.md", content)

    report = watched.scan()

    assert counts(report) == {"new": 1, "moved": 2}
    assert [d.doc_id for d in watched.ledger.documents()] == ["docs:y.md", "docs:z.md", "docs:zz.md"]


def test_a_file_that_comes_back_to_its_own_place_is_back_again(watched: Watched) -> None:
    """Also when an older document had the same bytes."""
    for name in ("a.md", "b.md"):
        watched.write(name, "same")
    watched.scan()
    before = homes(watched)
    for name in ("a.md", "b.md"):
        (watched.folder / name).unlink()
    watched.scan()
    watched.write("b.md", "same")

    report = watched.scan()

    assert counts(report) == {"restored": 1}
    assert homes(watched) == {"docs:b.md": before["docs:b.md"]}


def test_what_is_just_gone_moves_rather_than_what_was_deleted_earlier(watched: Watched) -> None:
    """Its rows are still in the tables."""
    for name in ("a.md", "b.md"):
        watched.write(name, "same")
    watched.scan()
    before = homes(watched)
    (watched.folder / "a.md").unlink()
    watched.scan()
    move(watched, "b.md", "c.md")

    watched.scan()

    assert homes(watched) == {"docs:c.md": before["docs:b.md"]}
    assert ids(watched) == ["docs:a.md", "docs:c.md"]


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


def put_fetched(watched: Watched, doc_id: str, content_hash: str, deleted_at: float | None) -> None:
    """A document that came through the queue."""
    row = {"doc_id": doc_id, "source": "queue", "path": "https://example.org/", "content_hash": content_hash}
    times = {"first_seen": NOW, "last_seen": NOW, "mtime_ns": 0, "deleted_at": deleted_at}
    with watched.ledger.begin() as connection:
        place = {"batch": "2024-05-01-0009", "seq": 9, "size_bytes": 4, "resolver": "http"}
        connection.execute(documents.insert().values(**row, **times, **place))
        bump(connection, {"2024-05-01-0009"})


def test_a_document_that_was_fetched_does_not_become_a_file(watched: Watched) -> None:
    """Whoever queued it may fetch it again."""
    watched.write("a.md", "same")
    watched.scan()
    (watched.folder / "a.md").rename(watched.folder / ".hidden")
    put_fetched(watched, "fetched", watched.known()["a.md"].content_hash, deleted_at=NOW)
    watched.scan()
    with watched.ledger.begin() as connection:
        connection.execute(documents.delete().where(documents.c.doc_id == "docs:a.md"))
    watched.write("b.md", "same")

    assert counts(watched.scan()) == {"new": 1}
    assert "fetched" in ids(watched)


def test_a_file_whose_id_a_fetched_document_has_is_reported(watched: Watched) -> None:
    """Neither may take the other's rows, and the other files do not wait for it."""
    put_fetched(watched, "docs:a.md", "0" * 64, deleted_at=None)
    watched.write("a.md")
    watched.write("b.md")

    report = watched.scan()

    assert counts(report) == {"new": 1}
    assert [(source, path) for source, path, _ in watched.ledger.problems()] == [("docs", "a.md")]
    assert "queued document" in report.problems[0][1].reason
    assert watched.known()["https://example.org/"].resolver == "http"


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

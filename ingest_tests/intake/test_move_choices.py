"""Which document a moved file is, when several match or its new path is taken."""

import pytest

from ingest_assets.intake.ledger import bump
from ingest_assets.intake.schema import documents
from ingest_tests.intake.conftest import NOW, Watched, counts
from ingest_tests.intake.test_moves import batch_and_seq, ids, move


def test_deleted_files_restored_with_swapped_names_keep_their_batches(watched: Watched) -> None:
    """Each gets the id that the other had; renaming them one by one would fail."""
    watched.write("a.md", "one")
    watched.write("b.md", "two")
    watched.scan()
    before = batch_and_seq(watched)
    for name in ("a.md", "b.md"):
        (watched.folder / name).unlink()
    watched.scan()
    watched.write("a.md", "two")
    watched.write("b.md", "one")

    report = watched.scan()

    assert counts(report) == {"moved": 2}
    assert batch_and_seq(watched) == {"docs:a.md": before["docs:b.md"], "docs:b.md": before["docs:a.md"]}


def test_a_move_to_the_path_of_a_deleted_document_replaces_it(watched: Watched) -> None:
    """Both batches run again: one may still have rows with that id."""
    watched.write("a.md", "one")
    watched.write("b.md", "two")
    watched.scan(max_documents=1)
    before = batch_and_seq(watched)
    (watched.folder / "a.md").unlink()
    watched.scan()
    move(watched, "b.md", "a.md")

    report = watched.scan()

    assert counts(report) == {"moved": 1}
    assert report.batches == {"2024-05-01-0001", "2024-05-01-0002"}
    assert batch_and_seq(watched) == {"docs:a.md": before["docs:b.md"]}
    assert ids(watched) == ["docs:a.md"]


def test_a_deleted_document_moves_when_its_content_returns_elsewhere(watched: Watched) -> None:
    """It is replaced only if its content does not return."""
    watched.write("a.md", "one")
    watched.write("b.md", "two")
    watched.scan()
    before = batch_and_seq(watched)
    (watched.folder / "a.md").unlink()
    watched.scan()
    move(watched, "b.md", "a.md")
    watched.write("c.md", "one")

    report = watched.scan()

    assert counts(report) == {"moved": 2}
    assert batch_and_seq(watched) == {"docs:a.md": before["docs:b.md"], "docs:c.md": before["docs:a.md"]}


def test_a_new_file_at_the_old_path_of_a_moved_document_is_new(watched: Watched) -> None:
    """The old content is elsewhere now, with the batch."""
    watched.write("a.md", "one")
    watched.scan()
    before = batch_and_seq(watched)
    (watched.folder / "a.md").unlink()
    watched.scan()
    watched.write("a.md", "other")
    watched.write("b.md", "one")

    report = watched.scan()

    assert counts(report) == {"new": 1, "moved": 1}
    assert batch_and_seq(watched) == {"docs:a.md": ("2024-05-01-0002", 2), "docs:b.md": before["docs:a.md"]}


def test_of_two_equal_files_the_missing_one_moves(watched: Watched) -> None:
    """The other keeps its path."""
    watched.write("a.md", "same")
    watched.write("b.md", "same")
    watched.scan()
    before = batch_and_seq(watched)
    move(watched, "b.md", "0.md")

    report = watched.scan()

    assert counts(report) == {"moved": 1, "unchanged": 1}
    assert batch_and_seq(watched) == {"docs:a.md": before["docs:a.md"], "docs:0.md": before["docs:b.md"]}


@pytest.mark.parametrize("content", ["same", ""], ids=["text", "empty"])
def test_equal_files_that_move_together_are_paired_in_order(watched: Watched, content: str) -> None:
    """By number and by path, so that every scan decides the same; the third is new."""
    watched.write("b.md", content)
    watched.write("a.md", content)
    watched.scan()
    for old, new in (("a.md", "z.md"), ("b.md", "y.md")):
        move(watched, old, new)
    watched.write("zz.md", content)

    report = watched.scan()

    assert counts(report) == {"new": 1, "moved": 2}
    assert [d.doc_id for d in watched.ledger.documents()] == ["docs:y.md", "docs:z.md", "docs:zz.md"]


def test_a_file_restored_at_its_path_is_the_old_document(watched: Watched) -> None:
    """Also if an older document had the same content."""
    for name in ("a.md", "b.md"):
        watched.write(name, "same")
    watched.scan()
    before = batch_and_seq(watched)
    for name in ("a.md", "b.md"):
        (watched.folder / name).unlink()
    watched.scan()
    watched.write("b.md", "same")

    report = watched.scan()

    assert counts(report) == {"restored": 1}
    assert batch_and_seq(watched) == {"docs:b.md": before["docs:b.md"]}


def test_a_just_deleted_document_moves_before_an_earlier_one(watched: Watched) -> None:
    """Its rows are still in the tables."""
    for name in ("a.md", "b.md"):
        watched.write(name, "same")
    watched.scan()
    before = batch_and_seq(watched)
    (watched.folder / "a.md").unlink()
    watched.scan()
    move(watched, "b.md", "c.md")

    watched.scan()

    assert batch_and_seq(watched) == {"docs:c.md": before["docs:b.md"]}
    assert ids(watched) == ["docs:a.md", "docs:c.md"]


def put_fetched(watched: Watched, doc_id: str, content_hash: str, deleted_at: float | None) -> None:
    """Enter a document that came through the queue."""
    row = {"doc_id": doc_id, "source": "queue", "path": "https://example.org/", "content_hash": content_hash}
    times = {"first_seen": NOW, "last_seen": NOW, "mtime_ns": 0, "deleted_at": deleted_at}
    with watched.ledger.begin() as connection:
        place = {"batch": "2024-05-01-0009", "seq": 9, "size_bytes": 4, "resolver": "http"}
        connection.execute(documents.insert().values(**row, **times, **place))
        bump(connection, {"2024-05-01-0009"})


def test_a_deleted_fetched_document_does_not_become_a_file(watched: Watched) -> None:
    """It can be queued and fetched again."""
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


def test_a_file_with_the_id_of_a_fetched_document_is_reported(watched: Watched) -> None:
    """Neither replaces the other's rows, and other files are entered."""
    put_fetched(watched, "docs:a.md", "0" * 64, deleted_at=None)
    watched.write("a.md")
    watched.write("b.md")

    report = watched.scan()

    assert counts(report) == {"new": 1}
    assert [(source, path) for source, path, _ in watched.ledger.problems()] == [("docs", "a.md")]
    assert "queued document" in report.problems[0][1].reason
    assert watched.known()["https://example.org/"].resolver == "http"

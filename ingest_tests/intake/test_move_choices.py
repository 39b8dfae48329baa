"""Which document a moved file is, when several could be meant or its new place is not free."""

import pytest

from ingest_assets.intake.ledger import bump
from ingest_assets.intake.schema import documents
from ingest_tests.intake.conftest import NOW, Watched, counts
from ingest_tests.intake.test_moves import homes, ids, move


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

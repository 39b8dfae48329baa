"""The ledger on disk: versioned, in WAL mode, and in folders of any name."""

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from ingest_assets.core.errors import IngestError
from ingest_assets.intake import schema
from ingest_assets.intake.ledger import Ledger, Source
from ingest_tests.intake.conftest import NOW, Watched


def test_a_ledger_of_another_version_is_refused_in_one_line(tmp_path: Path) -> None:
    """It names the file, the versions and what to do, and changes nothing."""
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    with ledger.begin() as connection:
        connection.execute(schema.meta.update().values(value="99"))
    ledger.close()

    with pytest.raises(IngestError) as refused:
        Ledger(path)

    message = str(refused.value)
    assert str(path) in message
    assert "version 99" in message
    assert f"supports {schema.LEDGER_VERSION}" in message
    assert "Use the release that created it" in message
    assert len(message.splitlines()) == 1
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT value FROM meta").fetchall() == [("99",)]


def test_a_new_ledger_has_its_version_and_does_not_block_readers(tmp_path: Path) -> None:
    """WAL mode: a reader sees the last committed state while a writer is at work."""
    path = tmp_path / "state" / "ledger.sqlite"
    writer, reader = Ledger(path), Ledger(path)
    writer.put_source(Source("docs", Path("/docs")), NOW)

    with writer.begin() as connection:
        connection.execute(schema.sources.delete())
        during = reader.sources()
    after = reader.sources()

    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        version = connection.execute("SELECT value FROM meta WHERE key = 'ledger_version'").fetchone()
    assert version == (str(schema.LEDGER_VERSION),)
    assert (during, after) == ([Source("docs", Path("/docs"))], [])


def test_a_transaction_that_fails_changes_nothing(tmp_path: Path) -> None:
    """Read, decide and write are one step."""
    ledger = Ledger(tmp_path / "ledger.sqlite")

    def fail_half_way() -> None:
        with ledger.begin() as connection:
            row = {"name": "a", "path": "/a", "origin": "command", "first_seen": NOW}
            connection.execute(schema.sources.insert().values(**row))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_half_way()

    assert ledger.sources() == []


@pytest.mark.parametrize("name", ["what?", "a#b", "100%25", "a b", "ü", "x?mode=memory"])
def test_a_ledger_is_stored_at_its_path(tmp_path: Path, name: str) -> None:
    """A folder's name is not part of a URL."""
    path = tmp_path / name / "ledger.sqlite"

    Ledger(path).put_source(Source("docs", Path("/docs")), NOW)

    assert path.is_file()
    assert {p.name for p in tmp_path.iterdir()} == {name}
    assert [source.name for source in Ledger(path).sources()] == ["docs"]


def test_a_reopened_ledger_has_everything(watched: Watched) -> None:
    """Documents, batches, sources and problems."""
    watched.write("a.md")
    watched.scan()
    watched.ledger.put_source(Source("docs", watched.folder), NOW)

    again = Ledger(watched.ledger_is_at)

    assert again.documents() == watched.ledger.documents()
    assert again.batches() == watched.ledger.batches() == {"2024-05-01-0001": 1}
    assert again.document("docs:a.md") == watched.known()["a.md"]
    assert again.document("docs:b.md") is None


def test_documents_can_be_selected_by_batch_and_source(watched: Watched) -> None:
    """In intake order."""
    for name in ("b.md", "a.md", "c.md"):
        watched.write(name)
    watched.scan(max_documents=2)

    assert [d.path for d in watched.ledger.documents(batch="2024-05-01-0001")] == ["a.md", "b.md"]
    assert [d.path for d in watched.ledger.documents(source="docs")] == ["a.md", "b.md", "c.md"]
    assert watched.ledger.documents(source="other") == []


def test_no_two_documents_can_share_a_number(watched: Watched) -> None:
    """The database itself rejects it."""
    watched.write("a.md")
    watched.write("b.md")
    watched.scan()

    def give_both_the_same() -> None:
        with watched.ledger.begin() as connection:
            connection.execute(schema.documents.update().values(seq=1))

    with pytest.raises(sa.exc.IntegrityError):
        give_both_the_same()


def test_a_touched_batch_has_a_higher_revision_than_any_before(tmp_path: Path) -> None:
    """The sensor asks for revisions above all it has seen."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.touch(["b", "a"])
    ledger.touch(["a"])

    assert ledger.batches() == {"a": 3, "b": 2}

"""Which databases can hold the ledger, and the errors for all others."""

import subprocess
import sys
from pathlib import Path

import pytest

from ingest_assets.core.errors import ConfigError, IngestError
from ingest_assets.intake.database import Database
from ingest_assets.intake.ledger import Ledger
from ingest_tests.intake.postgres import Postgres

WITHOUT_DRIVER = """
import sys
sys.modules["psycopg"] = None
from ingest_assets.intake.ledger import Ledger
from ingest_assets.core.errors import ConfigError
try:
    Ledger("postgresql://localhost/db")
except ConfigError as error:
    print(error)
"""


def test_a_missing_driver_is_one_line_that_names_the_extra() -> None:
    """The driver is optional; SQLite needs none."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DRIVER], capture_output=True, text=True, check=True, timeout=60
    )

    assert len(done.stdout.splitlines()) == 1
    assert "pip install 'ingest-assets[postgres]'" in done.stdout


def test_an_unreachable_server_is_one_line_without_the_password() -> None:
    """The line names the address and what to check."""
    with pytest.raises(IngestError) as refused:
        Ledger("postgresql://me:secret@127.0.0.1:1/db")

    message = str(refused.value)
    assert len(message.splitlines()) == 1
    assert "127.0.0.1:1/db" in message
    assert "that the server runs" in message
    assert "secret" not in message


@pytest.mark.parametrize("url", ["mysql://localhost/db", "oracle+cx://x/y", "not a url", ""])
def test_another_kind_of_database_is_refused(url: str) -> None:
    """Before any connection is made."""
    with pytest.raises(ConfigError, match="postgresql://"):
        Database(url)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_every_scheme_of_postgresql_works(postgres: Postgres, scheme: str) -> None:
    """Services use all three."""
    url = postgres.fresh_url().replace("postgresql", scheme, 1)

    assert Ledger(url).sources() == []


def test_a_broken_file_is_one_line(tmp_path: Path) -> None:
    """It is not overwritten."""
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"not a database" * 100)

    with pytest.raises(IngestError, match="cannot be used as the ledger") as refused:
        Ledger(path)

    assert str(path) in str(refused.value)
    assert path.read_bytes() == b"not a database" * 100

"""A home whose settings decide which lexical set is built, and which one is active."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ingest_assets.app.driver import RunReport
from ingest_assets.app.graph import stages_between
from ingest_assets.app.home import Home, open_home
from ingest_tests.runs import run_batches

UNTIL_CHUNKS = stages_between("documents", "chunks")
SETTINGS = """
[sources.notes]
path = "../notes"
[batches]
max_documents = 2
[execution]
run_on = "inline"
[embeddings.lexical]
min_term_chars = {chars}
"""


@dataclass
class World:
    """A home with notes in two batches; its settings decide which lexical set is built."""

    root: Path

    def home(self, chars: int) -> Home:
        """Return the home with this minimum length of terms."""
        (self.root / "home" / "ingest.toml").write_text(SETTINGS.format(chars=chars))
        return open_home(self.root / "home")

    def run(self, chars: int, *batches: str, stages: list[str] | None = None) -> RunReport:
        """Build the family's tables of these batches, or of all."""
        return run_batches(self.home(chars), stages or ["lexical"], {}, reason="test", only=batches or None)

    @property
    def batches(self) -> list[str]:
        return list(open_home(self.root / "home").ledger.batches())

    def served(self, asset: str = "embeddings/lexical") -> dict[str, str]:
        """Return the active tables' bytes by batch, as a reader finds them."""
        paths = (self.root / "home" / "data" / asset).glob("*.parquet")
        return {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}

    def documents(self, asset: str = "embeddings/lexical") -> set[str]:
        """Return the documents that have rows in the active set."""
        return set(pl.read_parquet(self.root / "home" / "data" / asset / "*.parquet")["doc_id"])

    def rebuilt(self, chars: int, tmp_path: Path) -> dict[str, str]:
        """Return the tables of a new home with only the current settings."""
        shutil.copytree(self.root, tmp_path / "rebuilt")
        fresh = World(tmp_path / "rebuilt")
        shutil.rmtree(fresh.root / "home" / "data" / "embeddings")
        fresh.run(chars)
        return fresh.served()

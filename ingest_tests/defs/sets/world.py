"""A home whose settings decide which set of the lexical family is made, and who serves meanwhile."""

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
    """A home with notes in two batches; its settings decide which set of the lexical family is made."""

    root: Path

    def home(self, chars: int) -> Home:
        """With terms of so many characters."""
        (self.root / "home" / "ingest.toml").write_text(SETTINGS.format(chars=chars))
        return open_home(self.root / "home")

    def run(self, chars: int, *batches: str, stages: list[str] | None = None) -> RunReport:
        """The family's tables of these batches, or of all."""
        return run_batches(self.home(chars), stages or ["lexical"], {}, reason="test", only=batches or None)

    @property
    def batches(self) -> list[str]:
        return list(open_home(self.root / "home").ledger.batches())

    def served(self, asset: str = "embeddings/lexical") -> dict[str, str]:
        """What a reader finds: each batch with the bytes of its table."""
        paths = (self.root / "home" / "data" / asset).glob("*.parquet")
        return {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}

    def documents(self, asset: str = "embeddings/lexical") -> set[str]:
        """Whose rows a reader finds."""
        return set(pl.read_parquet(self.root / "home" / "data" / asset / "*.parquet")["doc_id"])

    def rebuilt(self, chars: int, tmp_path: Path) -> dict[str, str]:
        """What a home gets that has never seen other settings."""
        shutil.copytree(self.root, tmp_path / "rebuilt")
        fresh = World(tmp_path / "rebuilt")
        shutil.rmtree(fresh.root / "home" / "data" / "embeddings")
        fresh.run(chars)
        return fresh.served()

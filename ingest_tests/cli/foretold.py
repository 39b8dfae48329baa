"""Compare a plan with the run that follows: the run does no more than planned."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ingest_assets.app.home import open_home
from ingest_assets.storage.parquet import read_footer
from ingest_tests.conftest import Command
from ingest_tests.intake.fetch.site import Site

STAGES = ("documents", "doctags", "admission", "chunks", "dense", "lexical")


def worth_reading(text: str) -> str:
    """Return a unique text that is long enough to be admitted."""
    return f"{text} This is what a beekeeper wrote about it on a long winter evening."


@dataclass(frozen=True)
class World:
    """A home, its watched folder, and a site whose pages can be queued."""

    command: Command
    folder: Path
    site: Site

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def queue(self, doc_id: str, **place: object) -> None:
        ((flag, where),) = place.items()
        self.command("queue", "enqueue", doc_id, f"--{flag}", where)

    def page(self, name: str, text: str) -> str:
        """Serve a page and return its URL."""
        body = f"<html><body><h1>{name}</h1><p>{worth_reading(text)}</p></body></html>".encode()
        return self.site.page(f"/{name}", lambda visit: visit.reply(200, body, content_type="text/html"))

    def rows(self) -> set[tuple[str, str]]:
        """Return the documents that have rows, by table."""
        documents = set()
        for stage in STAGES:
            asset = stage if stage in STAGES[:4] else f"embeddings/{stage}"
            files = (self.command.home / "data" / asset).glob("*.parquet")
            for file in (
                each for each in files if read_footer(each) is not None
            ):  # damaged files have no footer
                documents |= {
                    (stage, doc_id) for doc_id in pl.read_parquet(file, columns=["doc_id"])["doc_id"]
                }
        return documents

    def deleted(self) -> set[str]:
        """Return the deleted documents; a moved document is not deleted, under any id."""
        documents = open_home(self.command.home, read_only=True).ledger.documents()
        return {document.doc_id for document in documents if document.is_deleted()}

    def agree(self, *flags: object, check: int | None = 0, freed: int = 0, **environment: str) -> "Compared":
        """Plan a run, run it, and hold the one against the other.

        `freed` documents repeat one that changes or goes: that they are admitted then shows only in the run.
        """
        before = self.rows()
        planned = self.command.json("all", *flags, "--dry-run", **environment)
        visits = len(self.site.visits)
        ran = self.command.json("all", *flags, check=check, **environment)
        for stage, totals in ran["stages"].items():
            lines = [line for line in planned["stages"] if line["stage"] == stage]
            above = STAGES[: STAGES.index(stage) if stage != "lexical" else 3]
            failed = sum(ran["stages"][name]["failed"] for name in above if name in ran["stages"])
            more = freed if stage in STAGES[3:] else 0
            assert sum(line["run"] for line in lines) + more - failed >= totals["scheduled"], stage
            assert sum(line["done"] + line["failed"] for line in lines) <= totals["skipped"], stage
        assert planned["scan"] == ran["scan"]
        assert planned["problems"] == ran["problems"]
        assert set(planned["new_batches"]) <= {*ran["batches"]["ran"]}
        gone = {doc_id for _, doc_id in before - self.rows()} & self.deleted()
        assert planned["totals"]["removed"] == len(gone), gone
        return Compared(planned, ran, len(self.site.visits) - visits)


@dataclass(frozen=True)
class Compared:
    """What was planned and what was done, which agree."""

    planned: dict[str, Any]
    ran: dict[str, Any]
    visits: int

    @property
    def totals(self) -> dict[str, int]:
        """Return the planned totals, without zeros."""
        return {name: count for name, count in self.planned["totals"].items() if count}

    @property
    def scheduled(self) -> dict[str, int]:
        """Return what was done in each stage, without zeros."""
        stages = self.ran["stages"].items()
        return {stage: totals["scheduled"] for stage, totals in stages if totals["scheduled"]}

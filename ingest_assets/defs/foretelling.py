"""What tables will say that a run has still to make, as far as it is known before, for those who plan it."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ingest_assets.defs.home import Home
from ingest_assets.defs.settling import alike_by
from ingest_assets.intake.claims import Claims, Standing
from ingest_assets.model.items import Record, WorkItem
from ingest_assets.model.schemas import DOCUMENTS
from ingest_assets.stages.admission import BASIS, AdmissionStage, facts_of
from ingest_assets.stages.expected import expected_mime
from ingest_assets.stages.stage import Candidate, Stage
from ingest_assets.storage.footer import Footer
from ingest_assets.storage.tables import Table

if TYPE_CHECKING:
    import polars as pl

_LANGUAGE = ["doc_id", "language"]


@dataclass(frozen=True)
class _ToCome(Table):
    """A table that is not there: its rows, or only which items it will hold."""

    rows: pa.Table | None = None
    marks: Mapping[str, str] | None = None

    def scan(self) -> "pl.LazyFrame":
        """The rows to come."""
        import polars as pl

        return pl.LazyFrame(pl.from_arrow(self.rows)) if self.rows is not None else pl.LazyFrame()

    @property
    def footers(self) -> dict[Path, Footer]:
        """Of one file, whatever its name."""
        return {Path(): Footer("", "", {item: Record(mark, 1) for item, mark in (self.marks or {}).items()})}


def facts_to_come(documents: Mapping[str, WorkItem]) -> dict[str, dict[str, Any]]:
    """What will be known of documents that are still to be taken in; nothing of those that cannot be had."""
    rows = [row for item in documents.values() if (row := _document_row(item)) is not None]
    return facts_of(_ToCome("documents", (), pa.Table.from_pylist(rows, schema=DOCUMENTS.schema)))


def _document_row(item: WorkItem) -> dict[str, Any] | None:
    """As the stage will write it, but for what is not asked here."""
    mime = expected_mime(item)
    if mime is None:
        return None
    known = {name: item.meta.get(name) for name in DOCUMENTS.schema.names}
    uri = item.meta.get("uri") or Path(item.meta["path"]).as_uri()
    return known | {"doc_id": item.item_id, "uri": uri, "mime": mime}


def admitted_to_come(
    home: Home, batch: str, recipe: Stage, items: Sequence[WorkItem], unchanged: Set[str]
) -> dict[str, bool]:
    """Which documents will be admitted: of those that are judged for the first time all, of the `unchanged`
    ones, by whatever rules, those that were.

    As in a run, what changed claims its old text no more, so that others may stand for it.
    """
    claims = Claims(home.ledger)
    before = claims.of(batch)
    known = {item.item_id for item in items if _is_judged(item, before.get(item.item_id))}
    if isinstance(recipe, AdmissionStage):
        claims.leave(batch, known | unchanged, alike_by(recipe))
    standing = claims.of(batch)
    return {item.item_id: is_admitted(standing.get(item.item_id)) for item in items}


def _is_judged(item: WorkItem, stands: Standing | None) -> bool:
    return stands is not None and stands.basis == item.meta.get(BASIS)


def is_admitted(stands: Standing | None) -> bool:
    """By what it claims and how it stands."""
    if stands is None:
        return True
    return stands.is_eligible and stands.duplicate_of is None and stands.near_duplicate_of is None


def termed_to_come(
    recipe: Stage, marks: Mapping[str, str], languages: Mapping[str, str]
) -> Iterator[Candidate]:
    """Documents with chunks by the fingerprints of these, as the lexical stage will find them."""
    rows = pa.Table.from_pylist([{"doc_id": doc, "language": languages.get(doc, "")} for doc in marks])
    admission = _ToCome("admission", (), rows if marks else pa.table({name: [] for name in _LANGUAGE}))
    yield from recipe.candidates(_ToCome("chunks", (), marks=marks), admission)


def languages_known(home: Home, batch: str) -> dict[str, str]:
    """The language of each document of a batch: as admission says, or as its terms were counted by."""
    found: dict[str, str] = {}
    for stage in ("lexical", "admission"):
        table = home.tables(stage, in_the_making=True)
        here = Table(stage, tuple(path for path in table.paths if path.stem == batch))
        if here.paths:
            rows = here.scan().select(_LANGUAGE).unique().collect()
            found |= {doc: language or "" for doc, language in rows.iter_rows()}
    return found

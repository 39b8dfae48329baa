"""Admission judges the text that the chunker cuts."""

import json
from typing import Any

from docling_core.types.doc import DocItemLabel, DoclingDocument, GroupLabel, TableCell, TableData
from docling_core.types.doc.common.content_layer import ContentLayer

from ingest_assets.parsing.reader import document_json, usable_texts
from ingest_assets.stages.admission.document_text import Block, DocumentText, blocks_of, read_document_text


def _document() -> DoclingDocument:
    """A page with all kinds of items that contain text."""
    document = DoclingDocument(name="bridge")
    document.add_text(DocItemLabel.PAGE_HEADER, "Bridge office", content_layer=ContentLayer.FURNITURE)
    document.add_title("The bridge")
    document.add_heading("Inspection")
    paragraph = document.add_group(label=GroupLabel.INLINE)
    document.add_text(DocItemLabel.TEXT, "See the", parent=paragraph)
    document.add_text(DocItemLabel.TEXT, "full report", parent=paragraph, hyperlink="https://example.org/r")  # type: ignore[arg-type]
    document.add_text(DocItemLabel.TEXT, "of May.", parent=paragraph)
    items = document.add_list_group("parts")
    document.add_list_item("Deck", parent=items)
    linked = document.add_list_item("", parent=items)
    pieces = document.add_group(label=GroupLabel.INLINE, parent=linked)
    document.add_text(DocItemLabel.TEXT, "Cables", parent=pieces, hyperlink="https://example.org/c")  # type: ignore[arg-type]
    document.add_text(DocItemLabel.TEXT, "and bearings", parent=pieces)
    document.add_table(_cells([["Year", "Ducks"], ["2019", "120"]]))
    picture = document.add_picture(caption=document.add_text(DocItemLabel.CAPTION, "The deck in 1932"))
    document.add_text(DocItemLabel.TEXT, "words inside the picture", parent=picture)
    document.add_text(DocItemLabel.CODE, "x = 1")
    document.add_text(DocItemLabel.PAGE_FOOTER, "Page 1", content_layer=ContentLayer.FURNITURE)
    return document


def _cells(rows: list[list[str]]) -> TableData:
    cells = [
        TableCell(
            text=text,
            start_row_offset_idx=row,
            end_row_offset_idx=row + 1,
            start_col_offset_idx=column,
            end_col_offset_idx=column + 1,
        )
        for row, texts in enumerate(rows)
        for column, text in enumerate(texts)
    ]
    return TableData(table_cells=cells, num_rows=len(rows), num_cols=len(rows[0]))


def _read(document: DoclingDocument, **documents: Any) -> DocumentText:
    row = {"document": document_json(document), "title": "The bridge", "pages": 2}
    defaults: dict[str, Any] = {
        "mime": "text/html",
        "address": "https://example.org/bridge.html",
        "source": "queue",
        "size_bytes": 100,
        "last_modified": None,
    }
    return read_document_text(row, defaults | documents)


def test_the_body_is_the_text_that_the_chunker_cuts():
    """Without headers, footers and text inside pictures, but with the cells of tables."""
    document = _document()

    document_text = _read(document)

    assert document_text.text.split() == " ".join(usable_texts(document)).split()
    assert document_text.chars == sum(len("".join(text.split())) for text in usable_texts(document))


def test_pieces_of_a_paragraph_are_one_block():
    """A link in a sentence is not a separate line."""
    blocks = _read(_document()).blocks

    assert Block("See the full report of May.", "text", ("full report",)) in blocks
    assert Block("Cables and bearings", "list_item", ("Cables",)) in blocks


def test_a_table_is_read_row_by_row():
    """So that a rule can distinguish rows and sentences."""
    document_text = _read(_document())

    assert [block.text for block in document_text.blocks if block.label == "table"] == [
        "Year\tDucks",
        "2019\t120",
    ]


def test_headings_links_and_lists_are_counted():
    """The structural rules need them."""
    document_text = _read(_document())

    assert document_text.headings == ("The bridge", "Inspection")
    assert document_text.links == ("full report", "Cables")
    assert [block.label for block in document_text.blocks].count("list_item") == 2


def test_the_columns_of_the_rows_are_kept():
    """The document's file is not read again."""
    document_text = _read(_document(), last_modified="Wed, 21 Oct 2015 07:28:00 GMT")

    assert (document_text.title, document_text.pages, document_text.mime, document_text.source) == (
        "The bridge",
        2,
        "text/html",
        "queue",
    )
    assert document_text.last_modified == "Wed, 21 Oct 2015 07:28:00 GMT"
    assert document_text.mime == "text/html"


def test_a_document_without_text_has_no_blocks():
    """A blank scan is a valid document."""
    document_text = _read(DoclingDocument(name="blank"))

    assert (document_text.blocks, document_text.text, document_text.chars) == ((), "", 0)


def test_deep_and_circular_documents_are_read_to_their_end():
    """Converters have bugs; they must not crash or block a worker."""
    depth = 5000
    groups = [
        {"self_ref": f"#/groups/{at}", "children": [{"$ref": f"#/groups/{at + 1}"}], "label": "section"}
        for at in range(depth)
    ]
    groups.append(
        {"self_ref": f"#/groups/{depth}", "children": [{"$ref": "#/texts/0"}, {"$ref": "#/groups/0"}]}
    )
    content = {
        "body": {"self_ref": "#/body", "children": [{"$ref": "#/groups/0"}]},
        "groups": groups,
        "texts": [{"self_ref": "#/texts/0", "text": "deep \ud800", "label": "text"}],
    }

    assert [block.text for block in blocks_of(json.loads(json.dumps(content)))] == ["deep \ud800"]

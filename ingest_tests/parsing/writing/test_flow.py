"""Which documents are written in one pass, and which are left to Docling's own serializer."""

from collections.abc import Callable

import pytest
from docling_core.types.doc import (
    BoundingBox,
    DocItemLabel,
    DoclingDocument,
    GraphCell,
    GraphCellLabel,
    GraphData,
    ProvenanceItem,
    RichTableCell,
    Size,
    TableCell,
    TableData,
    TextItem,
)
from docling_core.types.doc.document import DescriptionAnnotation
from docling_core.types.doc.items.picture.meta import PictureMeta

from ingest_assets.parsing.fast_docling import as_flow, doctags_of
from ingest_tests.parsing.writing.oracle import as_docling_writes
from ingest_tests.parsing.writing.random_documents import PAGE_BREAK

FORM = GraphData(cells=[GraphCell(label=GraphCellLabel.KEY, cell_id=0, text="queen", orig="queen")], links=[])
PLACE = ProvenanceItem(page_no=1, bbox=BoundingBox(l=10, t=10, r=20, b=20), charspan=(0, 0))


@pytest.fixture
def document() -> DoclingDocument:
    """A document that is written in one pass."""
    document = DoclingDocument(name="bees")
    document.add_heading("Bees", level=2)
    document.add_text(DocItemLabel.TEXT, "They make <b>wax</b>.")
    return document


def _cell(text: str, row: int, column: int, down: int = 1, right: int = 1, **more: bool) -> TableCell:
    return TableCell(text=text, **_at(row, column, down, right), **more)


def _at(row: int, column: int, down: int = 1, right: int = 1) -> dict[str, int]:
    return {
        "start_row_offset_idx": row,
        "end_row_offset_idx": row + down,
        "start_col_offset_idx": column,
        "end_col_offset_idx": column + right,
        "row_span": down,
        "col_span": right,
    }


def _written_in_one_go(document: DoclingDocument) -> str:
    theirs = as_docling_writes(document.model_copy(deep=True))
    written = as_flow(document)
    assert written is not None
    assert written == doctags_of(document) == theirs
    return written


def _left_to_docling(document: DoclingDocument) -> str:
    theirs = as_docling_writes(document.model_copy(deep=True))
    assert as_flow(document) is None
    assert doctags_of(document) == theirs
    return theirs


def test_an_empty_document_is_written_in_one_go():
    """Only the enclosing tag."""
    assert _written_in_one_go(DoclingDocument(name="empty")) == "<doctag>\n</doctag>"


def test_nested_lists_are_written_in_one_go(document: DoclingDocument):
    """A list below an item becomes an item; the first item decides whether there are numbers."""
    outer = document.add_list_group()
    item = document.add_list_item("Hive", enumerated=True, parent=outer)
    inner = document.add_list_group(parent=item)
    document.add_list_item("Frame", parent=inner)
    deepest = document.add_list_group(parent=document.add_list_item("", parent=inner))
    document.add_list_item("Comb", enumerated=True, parent=deepest)
    document.add_list_item("Stand", enumerated=True, parent=outer)

    written = _written_in_one_go(document)

    assert written.count("<ordered_list>") == 2
    assert written.count("<unordered_list>") == 1


def test_formatted_runs_are_written_in_one_go(document: DoclingDocument):
    """A paragraph of several runs is an empty text with a group below it."""
    paragraph = document.add_text(DocItemLabel.TEXT, "")
    runs = document.add_inline_group(parent=paragraph)
    document.add_text(DocItemLabel.TEXT, "Bees ", parent=runs)
    document.add_text(DocItemLabel.TEXT, "dance", parent=runs, hyperlink="https://bees.example/dance")

    assert "<text><inline><text>Bees</text>" in _written_in_one_go(document)


def test_a_table_with_spans_and_headers_is_written_in_one_go(document: DoclingDocument):
    """Every kind of position: full, empty, spanned from the left, from above, and from both."""
    cells = [
        _cell("both", 0, 0, down=2, right=2, column_header=True),
        _cell("side", 0, 2, down=2, row_header=True),
        _cell("wide", 2, 0, right=3, row_section=True),
        _cell(" ", 3, 0),
        _cell("full", 3, 1),
    ]
    document.add_table(TableData(table_cells=cells, num_rows=4, num_cols=3))

    written = _written_in_one_go(document)

    assert "<ched>both<xcel><rhed>side<nl><xcel><xcel><ucel><nl>" in written
    assert "<srow>wide<lcel><lcel><nl><ecel><fcel>full<ecel><nl>" in written


def test_rich_cells_are_written_in_one_go(document: DoclingDocument):
    """A list, a table and a picture, each only inside its cell."""
    table = document.add_table(TableData(num_rows=1, num_cols=3))
    items = document.add_list_group(parent=table)
    document.add_list_item("drone", parent=items)
    inner = document.add_table(
        TableData(table_cells=[_cell("worker", 0, 0)], num_rows=1, num_cols=1), parent=table
    )
    picture = document.add_picture(parent=table)
    picture.captions.append(document.add_text(DocItemLabel.CAPTION, "queen", parent=picture).get_ref())
    table.data.table_cells.extend(
        RichTableCell(text="", ref=content.get_ref(), **_at(0, column))
        for column, content in enumerate((items, inner, picture))
    )

    written = _written_in_one_go(document)

    assert "<fcel><otsl><fcel>worker<nl></otsl><fcel><picture><caption>queen" in written
    assert written.count("drone") == 1


def test_captions_and_footnotes_are_written_in_one_go(document: DoclingDocument):
    """Captions are written with their item and its descendants; footnotes are omitted."""
    table = document.add_table(TableData(table_cells=[_cell("7 kg", 0, 0)], num_rows=1, num_cols=1))
    caption = document.add_text(DocItemLabel.CAPTION, "Weights", parent=table)
    document.add_text(DocItemLabel.TEXT, "in spring", parent=document.add_inline_group(parent=caption))
    table.captions.append(caption.get_ref())
    table.footnotes.append(document.add_text(DocItemLabel.FOOTNOTE, "without honey").get_ref())

    written = _written_in_one_go(document)

    assert "<caption>Weights <inline><text>in spring</text>\n</inline></caption></otsl>" in written
    assert "without honey" not in written


def test_a_picture_in_a_caption_has_its_own_caption_once(document: DoclingDocument):
    """Docling does not repeat nodes in a picture's caption; in a table's it does."""
    table = document.add_table(TableData(table_cells=[_cell("7 kg", 0, 0)], num_rows=1, num_cols=1))
    outer = document.add_text(DocItemLabel.CAPTION, "Weights", parent=table)
    table.captions.append(outer.get_ref())
    picture = document.add_picture(parent=outer)
    inner = document.add_text(DocItemLabel.CAPTION, "Scale", parent=picture)
    picture.captions.append(inner.get_ref())
    document.add_text(DocItemLabel.TEXT, "of brass", parent=inner)

    assert _written_in_one_go(document).count("of brass") == 1


@pytest.mark.parametrize("has_pages", [False, True])
def test_code_keeps_its_caption(document: DoclingDocument, has_pages: bool):
    """Docling's own export fails at it."""
    code = document.add_code("hive.open()")
    code.captions.append(document.add_text(DocItemLabel.CAPTION, "Opening", parent=code).get_ref())
    if has_pages:
        document.add_page(1, Size(width=100, height=100))
    with pytest.raises(TypeError):
        document.export_to_doctags()

    assert "<code><_unknown_>hive.open()<caption>Opening</caption></code>" in doctags_of(document)


def test_text_inside_a_picture_is_left_out_in_one_go(document: DoclingDocument):
    """Its caption is kept."""
    picture = document.add_picture()
    document.add_text(DocItemLabel.TEXT, "a label in the drawing", parent=picture)
    picture.captions.append(document.add_text(DocItemLabel.CAPTION, "A hive", parent=picture).get_ref())

    written = _written_in_one_go(document)

    assert "<picture><caption>A hive</caption></picture>" in written
    assert "a label in the drawing" not in written


def test_a_document_with_pages_is_left_to_docling(document: DoclingDocument):
    """It has positions."""
    document.add_page(1, Size(width=100, height=100))
    document.add_text(DocItemLabel.TEXT, "placed", prov=PLACE.model_copy(deep=True))

    assert "<loc_50>" in _left_to_docling(document)


def test_a_position_on_a_missing_page_is_left_to_docling(document: DoclingDocument):
    """Docling fails at it, and so do we."""
    document.add_text(DocItemLabel.TEXT, "placed", prov=PLACE.model_copy(deep=True))

    assert as_flow(document) is None
    for write in (doctags_of, DoclingDocument.export_to_doctags):
        with pytest.raises(KeyError):
            write(document)


def test_words_that_look_like_a_page_break_are_left_to_docling(document: DoclingDocument):
    """Docling treats them as one."""
    document.add_text(DocItemLabel.TEXT, f"before {PAGE_BREAK} after")

    assert "before <page_break> after" in _left_to_docling(document)


def test_a_picture_with_metadata_is_left_to_docling(document: DoclingDocument):
    """Its class or its data may have to be written."""
    document.add_picture().meta = PictureMeta()

    _left_to_docling(document)


def test_a_picture_with_an_annotation_is_left_to_docling(document: DoclingDocument):
    """The older form of metadata."""
    document.add_picture(annotations=[DescriptionAnnotation(text="a hive", provenance="somebody")])

    _left_to_docling(document)


def test_a_caption_from_inside_a_picture_is_left_to_docling(document: DoclingDocument):
    """It is not reached by the traversal."""
    picture = document.add_picture()
    inside = document.add_text(DocItemLabel.CAPTION, "inside", parent=document.add_group(parent=picture))
    picture.captions.append(inside.get_ref())

    assert "<picture><caption>inside</caption></picture>" in _left_to_docling(document)


def test_a_caption_outside_the_tree_is_left_to_docling(document: DoclingDocument):
    """It is in the document, but below no other item."""
    table = document.add_table(TableData())
    lost = TextItem(
        label=DocItemLabel.CAPTION, text="lost", orig="lost", self_ref=f"#/texts/{len(document.texts)}"
    )
    document.texts.append(lost)
    table.captions.append(lost.get_ref())

    assert "<otsl><caption>lost</caption></otsl>" in _left_to_docling(document)


def _add_key_values(document: DoclingDocument) -> None:
    document.add_key_values(graph=FORM)


def _add_form(document: DoclingDocument) -> None:
    document.add_form(graph=FORM)


def _add_field_region(document: DoclingDocument) -> None:
    field = document.add_field_item(parent=document.add_field_region())
    document.add_text(DocItemLabel.TEXT, "queen", parent=field)


@pytest.mark.parametrize("add", [_add_key_values, _add_form, _add_field_region])
def test_a_form_is_left_to_docling(document: DoclingDocument, add: Callable[[DoclingDocument], None]):
    """Both kinds that Docling has, and a list of values."""
    add(document)

    _left_to_docling(document)

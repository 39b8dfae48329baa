"""Tables as Markdown that can be cut between any two lines."""

from collections.abc import Iterator, Sequence
from typing import Any

from docling_core.transforms.serializer.base import SerializationResult
from docling_core.transforms.serializer.common import create_ser_result
from docling_core.transforms.serializer.markdown import MarkdownTableSerializer
from docling_core.types.doc import DoclingDocument, RichTableCell, TableCell, TableData, TableItem

from ingest_assets.stages.chunking.tables import TextOf, cell_texts, grid_of
from ingest_assets.stages.chunking.wide import line_of

_BORDER = "&#124;"  # a pipe within a cell, as Docling writes it


class RowsWriter(MarkdownTableSerializer):
    """Writes what Docling does when asked for compact tables, but every row on one line.

    Docling fills each column up to its widest cell, and below the header that is a token for every dash. Its
    compact form is made of the filled one, and loses part of a header whose cells hold line breaks.
    """

    def serialize(
        self, *, item: TableItem, doc_serializer: Any, doc: DoclingDocument, **named: Any
    ) -> SerializationResult:
        if named.get("_nested_in_table"):
            return super().serialize(item=item, doc_serializer=doc_serializer, doc=doc, **named)

        def text_of(cell: TableCell) -> str:
            if not isinstance(cell, RichTableCell):
                return cell.text
            inner = {**named, "_nested_in_table": True, "in_table_cell": True}
            return str(doc_serializer.serialize(item=cell.ref.resolve(doc=doc), **inner).text)

        parts = [doc_serializer.serialize_captions(item=item, **named)]
        if item.self_ref not in doc_serializer.get_excluded_refs(**named):
            if item.meta is None and item.__dict__.get("annotations"):
                parts.append(doc_serializer.serialize_annotations(item=item, **named))
            parts.append(create_ser_result(text=markdown(item.data, text_of), span_source=item))
        parts = [part for part in parts if part.text]
        return create_ser_result(text="\n\n".join(part.text for part in parts), span_source=parts)


def markdown(data: TableData, text_of: TextOf) -> str:
    """A header, the rule below it and the rows, one line each; nothing of a table without cells."""
    if data.num_rows == 0 or data.num_cols == 0:
        return ""
    grid = grid_of(data)
    texts = [[_within_a_line(text) for text in row] for row in cell_texts(grid, text_of)]
    headers = _header_rows(data, grid)
    names = [" - ".join(_changes(column[:headers])) for column in zip(*texts, strict=True)]
    return "\n".join(
        line_of(list(map(str.strip, cells))) for cells in [names, ["-"] * data.num_cols, *texts[headers:]]
    )


def _header_rows(data: TableData, grid: list[list[TableCell]]) -> int:
    """The first row where none is marked; none where the marks begin further down."""
    found = data._count_column_header_rows(grid=grid)
    is_marked = bool(found) or any(cell.column_header for row in grid[1:] for cell in row)
    return found if is_marked else 1


def _changes(texts: Sequence[str]) -> Iterator[str]:
    """Each text once where it stands several times in a row, as a cell does that reaches over rows."""
    before = ""
    for text in filter(None, texts):
        if text != before:
            yield text
        before = text


def _within_a_line(text: str) -> str:
    return " ".join(text.splitlines()).replace("|", _BORDER)

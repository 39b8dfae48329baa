"""Tables as Docling writes them for chunks, each value with the names of its row and column."""

from collections.abc import Callable, Iterator
from typing import Any

from docling_core.transforms.chunker.hierarchical_chunker import TripletTableSerializer
from docling_core.transforms.serializer.base import SerializationResult
from docling_core.transforms.serializer.common import create_ser_result
from docling_core.types.doc import DoclingDocument, TableCell, TableData, TableItem

from ingest_assets.stages.chunking.packing import END_OF_VALUE

TextOf = Callable[[TableCell], str]


class TripletWriter(TripletTableSerializer):
    """Writes the same without a data frame."""

    def serialize(
        self, *, item: TableItem, doc_serializer: Any, doc: DoclingDocument, **named: Any
    ) -> SerializationResult:
        parts = []
        caption = doc_serializer.serialize_captions(item=item, **named) if item.captions else None
        if caption is not None and caption.text:
            parts.append(caption)
        if item.self_ref not in doc_serializer.get_excluded_refs(**named):
            visited = named.get("visited")
            inner = named if visited is None else {**named, "visited": set(visited)}

            text = self.written(item.data, text_reader(doc, doc_serializer, **inner))
            if text:
                if visited is not None:
                    visited.update(inner["visited"])
                parts.append(create_ser_result(text=text, span_source=item))
        return create_ser_result(text="\n\n".join(part.text for part in parts), span_source=parts)

    def written(self, data: TableData, text_of: TextOf) -> str:
        """The table without its caption."""
        return table_text(data, text_of)


class ValuesWriter(TripletWriter):
    """Writes what says something: neither empty values, nor the names that rows and columns do not have."""

    def written(self, data: TableData, text_of: TextOf) -> str:
        return END_OF_VALUE.join(table_values(data, text_of))


def text_reader(doc: DoclingDocument, doc_serializer: Any, **named: Any) -> TextOf:
    """Reads cells, those too that hold more than text."""

    def text_of(cell: TableCell) -> str:
        return cell._get_text(doc=doc, doc_serializer=doc_serializer, **named)

    return text_of


def table_values(data: TableData, text_of: TextOf) -> list[str]:
    """Each value with the names of its row and column; as Docling writes a table that has names alone."""
    if data.num_rows == 0 or data.num_cols == 0:
        return []
    names, body = _texts(data, text_of)
    columns, rows = names, body
    if len(names) == 1 and body:  # Docling takes the first for the name of the others
        columns, rows = ["", body[0][0]], [["", row[0]] for row in body[1:]]
    if any(any(row[1:]) for row in rows):
        return [value for row in rows for value in _row_values(row, columns)]
    return list(filter(None, _triplets(names, body)))


def _row_values(row: list[str], names: list[str]) -> list[str]:
    """The row's own name where it has no values."""
    found = [
        ", ".join(filter(None, (row[0], f"{name} = {value}" if name else value)))
        for name, value in zip(names[1:], row[1:], strict=True)
        if value
    ]
    return found or [name for name in row[:1] if name]


def table_text(data: TableData, text_of: TextOf) -> str:
    """`row, column = value` of every cell; simpler forms for tables of one column, or without a body."""
    if data.num_rows == 0 or data.num_cols == 0:
        return ""
    return END_OF_VALUE.join(_triplets(*_texts(data, text_of)))


def _triplets(names: list[str], body: list[list[str]]) -> list[str]:
    if not body:
        return list(filter(None, names))
    if len(names) == 1:
        first, *values = (row[0] for row in body)
        return [f"{first} = {value}" for value in values] or [first]
    return [
        f"{row[0]}, {name} = {value}" for row in body for name, value in zip(names[1:], row[1:], strict=True)
    ]


def _texts(data: TableData, text_of: TextOf) -> tuple[list[str], list[list[str]]]:
    """The columns' names, which are numbers where there is no header, and the rows below."""
    grid = grid_of(data)
    headers = data._count_column_header_rows(grid=grid)
    texts = cell_texts(grid, text_of)
    names = [_name(above) for above in zip(*texts[:headers], strict=True)]
    body = [[text.strip() for text in row] for row in texts[headers:]]
    return names or [str(column) for column in range(data.num_cols)], body


def _name(texts: tuple[str, ...]) -> str:
    name = ""
    for text in texts:
        name += f".{text}" if name else text
    return name.strip()


def cell_texts(grid: list[list[TableCell]], text_of: TextOf) -> list[list[str]]:
    """The text in each place of a table; each cell is asked for once, however far it reaches."""
    known: dict[tuple[int, int], str] = {}

    def text(cell: TableCell) -> str:
        place = (cell.start_row_offset_idx, cell.start_col_offset_idx)
        if place not in known:
            known[place] = text_of(cell)
        return known[place]

    return [[text(cell) for cell in row] for row in grid]


def grid_of(data: TableData) -> list[list[TableCell]]:
    """What stands in each place of the table; a cell that reaches over several stands in each."""
    places: list[list[TableCell | None]] = [[None] * data.num_cols for _ in range(data.num_rows)]
    for cell in data.table_cells:
        columns = range(cell.start_col_offset_idx, min(cell.end_col_offset_idx, data.num_cols))
        for row in range(cell.start_row_offset_idx, min(cell.end_row_offset_idx, data.num_rows)):
            for column in columns:
                places[row][column] = cell
    return [list(_filled(at, row)) for at, row in enumerate(places)]


def _filled(at: int, row: list[TableCell | None]) -> Iterator[TableCell]:
    for column, cell in enumerate(row):
        yield cell or TableCell(
            text="",
            start_row_offset_idx=at,
            end_row_offset_idx=at + 1,
            start_col_offset_idx=column,
            end_col_offset_idx=column + 1,
        )

"""Tables as Docling writes them for chunks, each value with the names of its row and column."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, groupby
from operator import add, not_
from typing import Any, NamedTuple

from docling_core.transforms.chunker.hierarchical_chunker import TripletTableSerializer
from docling_core.transforms.serializer.base import SerializationResult
from docling_core.transforms.serializer.common import create_ser_result
from docling_core.transforms.serializer.markdown import MarkdownTableSerializer
from docling_core.types.doc import DoclingDocument, RichTableCell, TableCell, TableData, TableItem

from ingest_assets.stages.chunks.token_count import TokenCounter


class Unit(NamedTuple):
    """A text that is not cut any further, and what has to stand at the top of its chunk."""

    top: str
    text: str


@dataclass(frozen=True, slots=True)
class Room:
    """What a chunk holds, and how a text that is too long for it is cut."""

    most_tokens: int
    count: TokenCounter
    cut: Callable[[str, int], list[str]]

    def fits(self, text: str) -> bool:
        return self.count(text) <= self.most_tokens

    def cut_to_fit(self, text: str) -> list[str]:
        """The text's parts, each as much as a chunk holds."""
        return self.cut(text, self.most_tokens)


# Rows that do not fit below their header: cut between cells, and inside one only where it is too long.

_SHORT = 4  # so many times the cell that names a row has to fit into a chunk, to stand in each of its parts
_BETWEEN_CELLS = " | "


def _line_of(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {_BETWEEN_CELLS.join(cells)} |"


def _cells_of(line: str) -> list[str]:
    """The other way round; no cell holds a border."""
    return line[2:-2].split(_BETWEEN_CELLS)


def _cut_columns(names: Sequence[str], rows: Sequence[Sequence[str]], room: Room) -> Iterator[Unit]:
    """Whole columns, as many as fit below their names; the first again in each part where it is short."""
    for columns in _groups(names, rows, room):
        named = _line_of([names[at] for at in columns])
        header = f"{named}\n{_line_of(['-'] * len(columns))}\n"
        units: list[Unit] = []
        for row in rows:
            cells = [row[at] for at in columns]
            line = _line_of(cells)
            units += [Unit(header, line)] if room.fits(header + line) else _cut_row(cells, header, room)
        if not any(unit.top for unit in units):
            yield from (Unit("", part) for part in room.cut_to_fit(named))
        yield from units


def _groups(names: Sequence[str], rows: Sequence[Sequence[str]], room: Room) -> Iterator[list[int]]:
    """Columns that stand together: their names take at most half of the room, and every row fits below.

    Each cell is counted once, with its border: tokens of a line are those of its cells, or close to it. One
    that fits below no name is left out of account, as it is cut wherever it stands.
    """
    border = room.count("|")
    left = room.most_tokens - 3 * border
    heads = [width + room.count(" - |") for width in _widths(names, room)]
    widths = list(zip(*(_widths(row, room) for row in rows), strict=True))
    bodies = [
        [0 if head + cell > left else cell for cell in cells]
        for head, cells in zip(heads, widths, strict=True)
    ]
    is_named = _SHORT * (heads[0] + max(widths[0])) <= room.most_tokens

    def longest(start: Sequence[int], begin: int) -> list[int]:
        found, head, body = list(start), 0, [0] * len(rows)
        for at in [*start, *range(begin, len(names))]:
            head += heads[at]
            body = list(map(add, body, bodies[at]))
            if 2 * (head + 2 * border) > room.most_tokens or head + max(body) > left:
                break
            if at >= begin:
                found.append(at)
        return found if len(found) > len(start) else []

    at = 0
    while at < len(names):
        group = (at and is_named and longest([0], at)) or longest([], at) or [at]
        yield group
        at = group[-1] + 1


def _widths(cells: Sequence[str], room: Room) -> list[int]:
    """Tokens of each cell; of all of them first, as a counter that looks at words asks for many in one go."""
    room.count(_line_of(cells))
    return [room.count(f" {cell} |") for cell in cells]


def _cut_row(cells: Sequence[str], header: str, room: Room) -> Iterator[Unit]:
    """A row in parts: rows with some of the cells in their places, and with the first where it is short.

    Only a cell that does not fit beside it is cut. A header of more than half of the room is left out.
    """
    top = header if 2 * room.count(header) <= room.most_tokens else ""
    is_short = len(cells) > 1 and _SHORT * room.count(cells[0]) <= room.most_tokens
    # What every part of the row has: the header, and the cell that names the row.
    frame = [cells[0] if is_short else "", *[""] * (len(cells) - 1)]
    is_named = not frame[0]

    def line(held: Sequence[str]) -> str:
        """Places tell nothing where there is no header."""
        return _line_of(held if top else list(filter(None, held)))

    def with_cell(held: Sequence[str], at: int, text: str) -> str:
        return top + line([*held[:at], text, *held[at + 1 :]])

    def ended(held: Sequence[str]) -> Iterator[Unit]:
        """What is held; of the frame alone only the row's name, unless some part has it already."""
        nonlocal is_named
        if held != frame:
            yield Unit(top, line(held))
        elif not is_named:
            yield Unit("", frame[0])
        is_named = True

    left = room.most_tokens - room.count(top + line(frame))
    held = list(frame)
    for at, cell in [(at, cell) for at, cell in enumerate(cells) if cell and not frame[at]]:
        if any(room.count(word) > left for word in set(cell.split())):
            # A word would be torn that fits into a chunk by itself.
            yield from ended(held)
            held = list(frame)
            yield from (Unit("", part) for part in room.cut_to_fit(cell))
            continue
        for part in [cell] if room.fits(with_cell(frame, at, cell)) else room.cut(cell, left):
            if held[at] or not room.fits(with_cell(held, at, part)):
                yield from ended(held)
                held = list(frame)
            held[at] = part
    yield from ended(held)


# Tables that do not fit, packed into chunks: whole rows or whole values, as many as there is room for.

END_OF_VALUE = ". "
_HEADER_AND_RULE = re.compile(r"^\|.*\n\|(?: - \|)+$", re.MULTILINE)


def by_rows(text: str, room: Room) -> list[str]:
    """Whole rows of a Markdown table below its header; only a row that does not fit below it is cut.

    The parts of such a row have the header too; where that takes more than half of the room, they have whole
    columns, each below its own name.
    """
    found = _HEADER_AND_RULE.search(text)
    rows = text[found.end() + 1 :] if found else ""
    if found is None or not rows:
        return room.cut_to_fit(text)
    caption = text[: found.start()]  # with the empty line below it
    return _packed(caption, _below_header(f"{found.group()}\n", rows.split("\n"), room), "\n", room)


def by_values(before: str, values: Sequence[str], room: Room) -> list[str]:
    """Whole values; only one that does not fit is cut."""
    *ended, last = values
    texts = [*(value + END_OF_VALUE.rstrip() for value in ended), last]
    units = (
        Unit("", part) for text in texts for part in ([text] if room.fits(text) else room.cut_to_fit(text))
    )
    return _packed(before, units, " ", room)


def _below_header(header: str, lines: Sequence[str], room: Room) -> Iterator[Unit]:
    names = _cells_of(header.partition("\n")[0])
    has_half_left = 2 * room.count(header) <= room.most_tokens
    for fits, together in groupby(lines, key=lambda line: room.fits(header + line)):
        if fits:
            yield from (Unit(header, line) for line in together)
            continue
        rows = list(map(_cells_of, together))
        if has_half_left or any(len(cells) != len(names) for cells in rows):
            yield from (unit for cells in rows for unit in _cut_row(cells, header, room))
        else:
            yield from _cut_columns(names, rows, room)


def _packed(before: str, units: Iterator[Unit], glue: str, room: Room) -> list[str]:
    """What stands before the table is in the first chunk, or in chunks of its own where that is too long.

    Units are taken as they come, so that the words of each are counted while they are still remembered.
    """
    last = next(units, None)
    if last is None:
        return room.cut_to_fit(before.strip())
    first = "".join(last)
    chunks = [before + first] if room.fits(before + first) else [*room.cut_to_fit(before.strip()), first]
    for unit in units:
        longer = chunks[-1] + glue + unit.text
        if unit.top == last.top and room.fits(longer):
            chunks[-1] = longer
        else:
            chunks.append("".join(unit))
        last = unit
    return chunks


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
        """`row, column = value` of every cell; simpler forms for tables of one column, or without a body."""
        if data.num_rows == 0 or data.num_cols == 0:
            return ""
        return END_OF_VALUE.join(_triplets(*_texts(data, text_of)))


class ValuesWriter(TripletWriter):
    """Writes what says something: neither empty values, nor the names that rows and columns do not have."""

    def written(self, data: TableData, text_of: TextOf) -> str:
        return END_OF_VALUE.join(table_values(data, text_of))


def text_reader(doc: DoclingDocument, doc_serializer: Any, **named: Any) -> TextOf:
    """Reads cells, those too that hold more than text."""
    return lambda cell: cell._get_text(doc=doc, doc_serializer=doc_serializer, **named)


def table_values(data: TableData, text_of: TextOf) -> list[str]:
    """Each value with the names of its row and column; as Docling writes a table that has names alone."""
    if data.num_rows == 0 or data.num_cols == 0:
        return []
    names, body = _texts(data, text_of)
    columns, rows = names, body
    if len(names) == 1 and body:  # Docling takes the first for the name of the others
        columns, rows = ["", body[0][0]], [["", row[0]] for row in body[1:]]
    if not any(any(row[1:]) for row in rows):
        return list(filter(None, _triplets(names, body)))
    values: list[str] = []
    for row_name, *cells in rows:
        named = [
            f"{name} = {value}" if name else value
            for name, value in zip(columns[1:], cells, strict=True)
            if value
        ]
        # A row without values has its own name.
        values += [f"{row_name}, {value}" if row_name else value for value in named] or filter(
            None, [row_name]
        )
    return values


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
    grid = _grid_of(data)
    headers = data._count_column_header_rows(grid=grid)
    texts = _cell_texts(grid, text_of)
    # As Docling joins the lines of a header: empty ones count only below others.
    above = (dropwhile(not_, column) for column in zip(*texts[:headers], strict=True))
    names = [".".join(lines).strip() for lines in above]
    body = [[text.strip() for text in row] for row in texts[headers:]]
    return names or [str(column) for column in range(data.num_cols)], body


def _cell_texts(grid: list[list[TableCell]], text_of: TextOf) -> list[list[str]]:
    """The text in each place of a table; each cell is asked for once, however far it reaches."""
    known: dict[tuple[int, int], str] = {}

    def text(cell: TableCell) -> str:
        place = (cell.start_row_offset_idx, cell.start_col_offset_idx)
        if place not in known:
            known[place] = text_of(cell)
        return known[place]

    return [[text(cell) for cell in row] for row in grid]


def _grid_of(data: TableData) -> list[list[TableCell]]:
    """What stands in each place of the table; a cell that reaches over several stands in each."""
    places: list[list[TableCell | None]] = [[None] * data.num_cols for _ in range(data.num_rows)]
    for cell in data.table_cells:
        columns = range(cell.start_col_offset_idx, min(cell.end_col_offset_idx, data.num_cols))
        for row in range(cell.start_row_offset_idx, min(cell.end_row_offset_idx, data.num_rows)):
            for column in columns:
                places[row][column] = cell
    return [
        [
            cell
            or TableCell(
                text="",
                start_row_offset_idx=row,
                end_row_offset_idx=row + 1,
                start_col_offset_idx=column,
                end_col_offset_idx=column + 1,
            )
            for column, cell in enumerate(cells)
        ]
        for row, cells in enumerate(places)
    ]


# Tables as Markdown that can be cut between any two lines.

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
    grid = _grid_of(data)
    texts = [
        [" ".join(text.splitlines()).replace("|", _BORDER) for text in row]
        for row in _cell_texts(grid, text_of)
    ]
    headers = data._count_column_header_rows(grid=grid)
    # The first row is the header where none is marked; none is where the marks begin further down.
    if not headers and not any(cell.column_header for row in grid[1:] for cell in row):
        headers = 1
    # A cell that reaches over several rows of the header is named once.
    above = (
        [text for text, _ in groupby(filter(None, column[:headers]))] for column in zip(*texts, strict=True)
    )
    names = [" - ".join(changes) for changes in above]
    return "\n".join(
        _line_of(list(map(str.strip, cells))) for cells in [names, ["-"] * data.num_cols, *texts[headers:]]
    )

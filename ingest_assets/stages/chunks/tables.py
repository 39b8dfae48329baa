"""Writing tables for chunks (triplets, values, Markdown rows), and splitting those that do not fit."""

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
    """A text that is not cut any further, and the header that must be at the top of its chunk."""

    top: str
    text: str


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """The token limit of a chunk, and the function that cuts a longer text."""

    max_tokens: int
    count: TokenCounter
    cut: Callable[[str, int], list[str]]

    def fits(self, text: str) -> bool:
        return self.count(text) <= self.max_tokens

    def cut_to_fit(self, text: str) -> list[str]:
        """Cut the text into parts that each fit into a chunk."""
        return self.cut(text, self.max_tokens)


# Rows that do not fit below their header: cut between cells, and within a cell only if it is too long.

_SHORT = 4  # a row's first cell is repeated in each of its parts if it fits this many times into a chunk
_BETWEEN_CELLS = " | "


def _line_of(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {_BETWEEN_CELLS.join(cells)} |"


def _cells_of(line: str) -> list[str]:
    """Return the cells of such a row. No cell contains a border."""
    return line[2:-2].split(_BETWEEN_CELLS)


def _cut_columns(names: Sequence[str], rows: Sequence[Sequence[str]], budget: TokenBudget) -> Iterator[Unit]:
    """Yield whole columns, as many at once as fit below their names; repeat the first one if it is short."""
    for columns in _groups(names, rows, budget):
        name_line = _line_of([names[column] for column in columns])
        header = f"{name_line}\n{_line_of(['-'] * len(columns))}\n"
        units: list[Unit] = []
        for row in rows:
            cells = [row[column] for column in columns]
            line = _line_of(cells)
            units += [Unit(header, line)] if budget.fits(header + line) else _cut_row(cells, header, budget)
        if not any(unit.top for unit in units):
            yield from (Unit("", part) for part in budget.cut_to_fit(name_line))
        yield from units


def _groups(names: Sequence[str], rows: Sequence[Sequence[str]], budget: TokenBudget) -> Iterator[list[int]]:
    """Group columns so that their names take at most half of the budget, and every row fits below.

    Each cell is counted once, with its border: a line has about as many tokens as its cells together. A cell
    that does not fit below its column's name is ignored, because it is cut in any group.
    """
    border = budget.count("|")
    left = budget.max_tokens - 3 * border
    header_tokens = [tokens + budget.count(" - |") for tokens in _token_counts(names, budget)]
    cell_tokens = list(zip(*(_token_counts(row, budget) for row in rows), strict=True))
    row_tokens = [
        [0 if head + cell > left else cell for cell in cells]
        for head, cells in zip(header_tokens, cell_tokens, strict=True)
    ]
    repeats_first = _SHORT * (header_tokens[0] + max(cell_tokens[0])) <= budget.max_tokens

    def longest(start: Sequence[int], begin: int) -> list[int]:
        group, head, body = list(start), 0, [0] * len(rows)
        for column in [*start, *range(begin, len(names))]:
            head += header_tokens[column]
            body = list(map(add, body, row_tokens[column]))
            if 2 * (head + 2 * border) > budget.max_tokens or head + max(body) > left:
                break
            if column >= begin:
                group.append(column)
        return group if len(group) > len(start) else []

    begin = 0
    while begin < len(names):
        group = (begin and repeats_first and longest([0], begin)) or longest([], begin) or [begin]
        yield group
        begin = group[-1] + 1


def _token_counts(cells: Sequence[str], budget: TokenBudget) -> list[int]:
    """Count the tokens of each cell. Counting the whole line first makes a word counter cache all words."""
    budget.count(_line_of(cells))
    return [budget.count(f" {cell} |") for cell in cells]


def _cut_row(cells: Sequence[str], header: str, budget: TokenBudget) -> Iterator[Unit]:
    """Yield the parts of a row: each has some cells in their columns, and the first cell if that is short.

    Only a cell that does not fit next to it is cut. A header of more than half of the budget is left out.
    """
    top = header if 2 * budget.count(header) <= budget.max_tokens else ""
    is_short = len(cells) > 1 and _SHORT * budget.count(cells[0]) <= budget.max_tokens
    # The frame of every part: empty cells, and the cell that names the row.
    frame = [cells[0] if is_short else "", *[""] * (len(cells) - 1)]
    is_named = not frame[0]

    def line(filled: Sequence[str]) -> str:
        """Empty cells have no meaning without a header, so they are left out."""
        return _line_of(filled if top else list(filter(None, filled)))

    def with_cell(filled: Sequence[str], column: int, text: str) -> str:
        return top + line([*filled[:column], text, *filled[column + 1 :]])

    def flush(filled: Sequence[str]) -> Iterator[Unit]:
        """Yield the cells collected so far; if there are none, the row's name, but only once."""
        nonlocal is_named
        if filled != frame:
            yield Unit(top, line(filled))
        elif not is_named:
            yield Unit("", frame[0])
        is_named = True

    left = budget.max_tokens - budget.count(top + line(frame))
    filled = list(frame)
    for column, cell in [(column, cell) for column, cell in enumerate(cells) if cell and not frame[column]]:
        if any(budget.count(word) > left for word in set(cell.split())):
            # Within the frame, a word would be cut that can fit into a chunk of its own.
            yield from flush(filled)
            filled = list(frame)
            yield from (Unit("", part) for part in budget.cut_to_fit(cell))
            continue
        for part in [cell] if budget.fits(with_cell(frame, column, cell)) else budget.cut(cell, left):
            if filled[column] or not budget.fits(with_cell(filled, column, part)):
                yield from flush(filled)
                filled = list(frame)
            filled[column] = part
    yield from flush(filled)


# Tables that do not fit, packed into chunks: whole rows or whole values, as many as the budget allows.

END_OF_VALUE = ". "
_HEADER_AND_RULE = re.compile(r"^\|.*\n\|(?: - \|)+$", re.MULTILINE)


def split_by_rows(text: str, budget: TokenBudget) -> list[str]:
    """Split a Markdown table between rows, and repeat the header; only a row that does not fit is cut.

    The parts of such a row repeat the header, too. A table whose header takes more than half of the budget is
    split into whole columns, each below its own name.
    """
    header = _HEADER_AND_RULE.search(text)
    rows = text[header.end() + 1 :] if header else ""
    if header is None or not rows:
        return budget.cut_to_fit(text)
    caption = text[: header.start()]  # with the empty line below it
    return _pack(caption, _below_header(f"{header.group()}\n", rows.split("\n"), budget), "\n", budget)


def split_by_values(before: str, values: Sequence[str], budget: TokenBudget) -> list[str]:
    """Split a table between values; only a value that does not fit is cut."""
    *first, last = values
    texts = [*(value + END_OF_VALUE.rstrip() for value in first), last]
    units = (
        Unit("", part)
        for text in texts
        for part in ([text] if budget.fits(text) else budget.cut_to_fit(text))
    )
    return _pack(before, units, " ", budget)


def _below_header(header: str, lines: Sequence[str], budget: TokenBudget) -> Iterator[Unit]:
    names = _cells_of(header.partition("\n")[0])
    has_half_left = 2 * budget.count(header) <= budget.max_tokens
    for fits, together in groupby(lines, key=lambda line: budget.fits(header + line)):
        if fits:
            yield from (Unit(header, line) for line in together)
            continue
        rows = list(map(_cells_of, together))
        if has_half_left or any(len(cells) != len(names) for cells in rows):
            yield from (unit for cells in rows for unit in _cut_row(cells, header, budget))
        else:
            yield from _cut_columns(names, rows, budget)


def _pack(before: str, units: Iterator[Unit], glue: str, budget: TokenBudget) -> list[str]:
    """Pack units into chunks. The text before the table is in the first chunk, or in its own if too long.

    Units are consumed lazily, so that their words are counted while they are still cached.
    """
    last = next(units, None)
    if last is None:
        return budget.cut_to_fit(before.strip())
    first = "".join(last)
    chunks = [before + first] if budget.fits(before + first) else [*budget.cut_to_fit(before.strip()), first]
    for unit in units:
        longer = chunks[-1] + glue + unit.text
        if unit.top == last.top and budget.fits(longer):
            chunks[-1] = longer
        else:
            chunks.append("".join(unit))
        last = unit
    return chunks


TextOf = Callable[[TableCell], str]


class TripletWriter(TripletTableSerializer):
    """Writes the same triplets without a data frame."""

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
            text = self.write(item.data, text_reader(doc, doc_serializer, **inner))
            if text:
                if visited is not None:
                    visited.update(inner["visited"])
                parts.append(create_ser_result(text=text, span_source=item))
        return create_ser_result(text="\n\n".join(part.text for part in parts), span_source=parts)

    def write(self, data: TableData, text_of: TextOf) -> str:
        """Write `row, column = value` for every cell; tables of one column or without a body are simpler."""
        if data.num_rows == 0 or data.num_cols == 0:
            return ""
        return END_OF_VALUE.join(_triplets(*_texts(data, text_of)))


class ValuesWriter(TripletWriter):
    """Writes the triplets without empty values and without missing names of rows and columns."""

    def write(self, data: TableData, text_of: TextOf) -> str:
        return END_OF_VALUE.join(table_values(data, text_of))


def text_reader(doc: DoclingDocument, doc_serializer: Any, **named: Any) -> TextOf:
    """Return a function that reads the text of a cell, also of a rich cell."""
    return lambda cell: cell._get_text(doc=doc, doc_serializer=doc_serializer, **named)


def table_values(data: TableData, text_of: TextOf) -> list[str]:
    """Return each value with the names of its row and column; a table of names only as Docling writes it."""
    if data.num_rows == 0 or data.num_cols == 0:
        return []
    names, body = _texts(data, text_of)
    columns, rows = names, body
    if len(names) == 1 and body:  # like Docling, use the first value as the name of the others
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
        # A row without values is written as its name.
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
    """Return the names of the columns (their numbers if there is no header), and the rows below."""
    grid = _grid_of(data)
    headers = data._count_column_header_rows(grid=grid)
    texts = _cell_texts(grid, text_of)
    # Join the lines of a header as Docling does: empty lines at the top are left out.
    above = (dropwhile(not_, column) for column in zip(*texts[:headers], strict=True))
    names = [".".join(lines).strip() for lines in above]
    body = [[text.strip() for text in row] for row in texts[headers:]]
    return names or [str(column) for column in range(data.num_cols)], body


def _cell_texts(grid: list[list[TableCell]], text_of: TextOf) -> list[list[str]]:
    """Return the text at each position of a table; a cell that spans several positions is read once."""
    texts: dict[tuple[int, int], str] = {}

    def text(cell: TableCell) -> str:
        position = (cell.start_row_offset_idx, cell.start_col_offset_idx)
        if position not in texts:
            texts[position] = text_of(cell)
        return texts[position]

    return [[text(cell) for cell in row] for row in grid]


def _grid_of(data: TableData) -> list[list[TableCell]]:
    """Return the cell at each position of the table; a cell that spans several positions is at each."""
    grid: list[list[TableCell | None]] = [[None] * data.num_cols for _ in range(data.num_rows)]
    for cell in data.table_cells:
        columns = range(cell.start_col_offset_idx, min(cell.end_col_offset_idx, data.num_cols))
        for row in range(cell.start_row_offset_idx, min(cell.end_row_offset_idx, data.num_rows)):
            for column in columns:
                grid[row][column] = cell
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
        for row, cells in enumerate(grid)
    ]


# Tables as Markdown that can be cut between any two lines.

_BORDER = "&#124;"  # Docling's escape for a pipe within a cell


class RowsWriter(MarkdownTableSerializer):
    """Writes Docling's compact tables, but every row on one line.

    Docling pads each column to its widest cell, and each dash below the header is a token. It derives the
    compact form from the padded one, and loses part of a header whose cells contain line breaks.
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
    """Write the header, the rule below it and the rows, one line each; empty for a table without cells."""
    if data.num_rows == 0 or data.num_cols == 0:
        return ""
    grid = _grid_of(data)
    texts = [
        [" ".join(text.splitlines()).replace("|", _BORDER) for text in row]
        for row in _cell_texts(grid, text_of)
    ]
    headers = data._count_column_header_rows(grid=grid)
    # If no cell is marked as header, the first row is; if only lower cells are marked, there is none.
    if not headers and not any(cell.column_header for row in grid[1:] for cell in row):
        headers = 1
    # A cell that spans several rows of the header is named once.
    above = (
        [text for text, _ in groupby(filter(None, column[:headers]))] for column in zip(*texts, strict=True)
    )
    names = [" - ".join(lines) for lines in above]
    return "\n".join(
        _line_of(list(map(str.strip, cells))) for cells in [names, ["-"] * data.num_cols, *texts[headers:]]
    )

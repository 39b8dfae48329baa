"""Row groups taken out of the Parquet file they were encoded in, and told of in the footer of another."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from ingest_assets.storage.thrift import (
    Elements,
    Field,
    Kind,
    NotThrift,
    Struct,
    Value,
    read_struct,
    write_struct,
)

MAGIC = b"PAR1"
_TAIL = 8  # bytes after the footer: its length and the magic
_MOST_ORDINAL = 2**15 - 1  # it is a short number, and Arrow leaves it out from there on

# Numbers of fields in parquet.thrift.
_FILE_ROWS, _FILE_GROUPS = 3, 4
_GROUP_COLUMNS, _GROUP_ROWS, _GROUP_OFFSET, _GROUP_ORDINAL = 1, 3, 5, 7
_COLUMN_OFFSET, _COLUMN_META = 2, 3
_META_SIZE, _DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE = 7, 9, 10, 11

# What may stand there: it has no offset, or one that is moved here. Encryption, other files, page indexes,
# Bloom filters and whatever Parquet thinks of next may not.
_KNOWN_OF_FILE = frozenset(range(1, 8))
_KNOWN_OF_GROUP = frozenset(range(1, 8))
_KNOWN_OF_COLUMN = frozenset({_COLUMN_OFFSET, _COLUMN_META})
_KNOWN_OF_META = frozenset({*range(1, 14), 16, 17})


class NotMovable(Exception):
    """A file with something in it that must stay where its writer put it."""


@dataclass(frozen=True, slots=True)
class EncodedGroup:
    """The pages of one row group, and what the footer says of it while they begin right after the magic."""

    pages: memoryview
    description: Struct

    @property
    def rows(self) -> int:
        return _number(self.description, _GROUP_ROWS)

    def moved(self, begin: int, ordinal: int) -> Struct:
        """What a footer says of it as the group with this number, its pages beginning at this byte."""
        by = begin - len(MAGIC)
        columns = self.description[_GROUP_COLUMNS]
        moved = _shifted(self.description, (_GROUP_OFFSET,), by)
        values: list[Value] = [_moved_column(column, by) for column in _structs(columns)]
        moved[_GROUP_COLUMNS] = Field(columns.kind, Elements(Kind.STRUCT, values))
        if ordinal > _MOST_ORDINAL:
            moved.pop(_GROUP_ORDINAL, None)
        elif _GROUP_ORDINAL in moved:
            moved[_GROUP_ORDINAL] = Field(Kind.I16, ordinal)
        return moved


def group_of(file: memoryview) -> EncodedGroup:
    """The only row group of a Parquet file; refused unless all that is in the file can be moved."""
    footer = _footer(file)
    groups = _structs(footer[_FILE_GROUPS])
    if len(groups) != 1:
        raise NotMovable(f"{len(groups)} row groups instead of one")
    pages = file[len(MAGIC) : _footer_begin(file)]
    _check_group(groups[0], len(MAGIC) + len(pages))
    return EncodedGroup(pages, groups[0])


def tail_of(empty: memoryview, groups: list[Struct], rows: int) -> bytes:
    """The end of a file with these groups, which but for them is the given one: footer, length and magic."""
    footer = _footer(empty)
    if _structs(footer[_FILE_GROUPS]):
        raise NotMovable("there are rows where none should be")
    values: list[Value] = list(groups)
    listed = replace(footer[_FILE_GROUPS], value=Elements(Kind.STRUCT, values))
    counted = replace(footer[_FILE_ROWS], value=rows)
    raw = write_struct({**footer, _FILE_ROWS: counted, _FILE_GROUPS: listed})
    return raw + len(raw).to_bytes(4, "little") + MAGIC


def _footer(file: memoryview) -> Struct:
    if file[: len(MAGIC)] != MAGIC or file[-len(MAGIC) :] != MAGIC:
        raise NotMovable("not a plain Parquet file")
    try:
        footer = read_struct(bytes(file[_footer_begin(file) : -_TAIL]))
    except NotThrift as error:
        raise NotMovable(f"the footer cannot be read: {error}") from error
    _check_known("file", footer, _KNOWN_OF_FILE, {_FILE_ROWS, _FILE_GROUPS})
    return footer


def _footer_begin(file: memoryview) -> int:
    return len(file) - _TAIL - int.from_bytes(file[-_TAIL : -len(MAGIC)], "little")


def _check_group(group: Struct, end: int) -> None:
    """Its columns must fill the file from magic to footer: what lies elsewhere might be anything."""
    _check_known("row group", group, _KNOWN_OF_GROUP, {_GROUP_COLUMNS, _GROUP_ROWS})
    position = len(MAGIC)
    for column in _structs(group[_GROUP_COLUMNS]):
        _check_known("column", column, _KNOWN_OF_COLUMN, {_COLUMN_META})
        meta = _struct(column[_COLUMN_META].value)
        _check_known("column's description", meta, _KNOWN_OF_META, {_META_SIZE, _DATA_PAGE})
        begin = _number(meta, _DICTIONARY_PAGE) or _number(meta, _DATA_PAGE)
        size = _number(meta, _META_SIZE)
        if size and begin != position:  # of no rows there may be no page
            raise NotMovable(f"a column begins at byte {begin}, where {position} was expected")
        position += size
    if position != end:
        raise NotMovable(f"the columns end at byte {position}, and the footer begins at {end}")


def _check_known(what: str, found: Struct, known: Collection[int], needed: Collection[int]) -> None:
    strange = [number for number in found if number not in known]
    missing = [number for number in needed if number not in found]
    if strange or missing:
        raise NotMovable(f"a {what} with fields {strange} that are not known, and without {missing}")


def _moved_column(column: Struct, by: int) -> Struct:
    meta = column[_COLUMN_META]
    shifted = _shifted(_struct(meta.value), (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE), by)
    return {**_shifted(column, (_COLUMN_OFFSET,), by), _COLUMN_META: replace(meta, value=shifted)}


def _shifted(struct: Struct, offsets: tuple[int, ...], by: int) -> Struct:
    """With these offsets moved; one that is less than the magic's length says that there is no such page."""
    there = {number: _number(struct, number) for number in offsets}
    moved = {
        number: replace(struct[number], value=offset + by)
        for number, offset in there.items()
        if offset >= len(MAGIC)
    }
    return {**struct, **moved}


def _number(struct: Struct, number: int) -> int:
    """An integer of a structure; 0 where it is not given."""
    value = struct[number].value if number in struct else 0
    if not isinstance(value, int):
        raise NotMovable(f"field {number} is not a number")
    return value


def _struct(value: Value) -> Struct:
    if not isinstance(value, dict):
        raise NotMovable("a value where a structure was expected")
    return value


def _structs(field: Field) -> list[Struct]:
    if not isinstance(field.value, Elements):
        raise NotMovable("a value where a list was expected")
    return [_struct(value) for value in field.value.values]

"""Thrift's compact protocol without a schema: read into plain structures, written back byte for byte.

The footer of a Parquet file is such a structure. What Parquet never uses (maps, endless nesting) is refused.
"""

import enum
from dataclasses import dataclass
from typing import TypeAlias

_MOST_NESTED = 64  # a Parquet footer needs six; a damaged one must not exhaust the stack


class NotThrift(ValueError):
    """Bytes that are not a structure of this protocol, or hold what is not supported."""


class Kind(enum.IntEnum):
    """How a value is written."""

    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12


@dataclass(frozen=True, slots=True)
class Elements:
    """A list or set: the kind of all its values, and these."""

    kind: Kind
    values: list["Value"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a structure. A boolean is its kind; a double stays as its eight bytes."""

    kind: Kind
    value: "Value"


Struct: TypeAlias = dict[int, Field]
Value: TypeAlias = bool | int | bytes | Elements | Struct

_BOOLEANS = (Kind.TRUE, Kind.FALSE)
_INTEGERS = (Kind.I16, Kind.I32, Kind.I64)


def read_struct(raw: bytes) -> Struct:
    """The structure that these bytes are, all of them; what would not be written back so is refused."""
    reader = _Reader(raw)
    try:
        found = reader.struct(0)
    except (IndexError, ValueError) as error:
        raise NotThrift(f"not a Thrift structure at byte {reader.position}: {error}") from error
    if write_struct(found) != raw:
        raise NotThrift("a Thrift structure that is written in an unusual way, or with something after it")
    return found


def write_struct(struct: Struct) -> bytes:
    """Its bytes, each field and number in the shortest form."""
    out = bytearray()
    _write_struct(out, struct)
    return bytes(out)


class _Reader:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self.position = 0

    def struct(self, depth: int) -> Struct:
        if depth > _MOST_NESTED:
            raise NotThrift("nested too deeply")
        fields: Struct = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, Kind(head & 15)
            number = number + step if step else _from_zigzag(self._varint())
            value = kind is Kind.TRUE if kind in _BOOLEANS else self._value(kind, depth)
            fields[number] = Field(kind, value)
        return fields

    def _value(self, kind: Kind, depth: int) -> Value:
        if kind in _INTEGERS:
            return _from_zigzag(self._varint())
        if kind is Kind.BINARY:
            return self._bytes(self._varint())
        if kind is Kind.STRUCT:
            return self.struct(depth + 1)
        if kind in (Kind.LIST, Kind.SET):
            return self._elements(depth + 1)
        if kind is Kind.DOUBLE:
            return self._bytes(8)
        if kind is Kind.MAP:
            raise NotThrift("maps are not supported")
        return self._byte()  # a byte, or a boolean in a list

    def _elements(self, depth: int) -> Elements:
        if depth > _MOST_NESTED:
            raise NotThrift("nested too deeply")
        head = self._byte()
        kind = Kind(head & 15)
        count = head >> 4 if head >> 4 < 15 else self._varint()
        return Elements(kind, [self._value(kind, depth) for _ in range(count)])

    def _byte(self) -> int:
        found = self._raw[self.position]
        self.position += 1
        return found

    def _bytes(self, count: int) -> bytes:
        found = self._raw[self.position : self.position + count]
        if len(found) < count:
            raise NotThrift("ends too early")
        self.position += count
        return found

    def _varint(self) -> int:
        found = shift = 0
        while (byte := self._byte()) & 0x80:
            found |= (byte & 0x7F) << shift
            shift += 7
        return found | byte << shift


def _write_struct(out: bytearray, struct: Struct) -> None:
    before = 0
    for number, field in struct.items():
        step = number - before
        if 0 < step <= 15:
            out.append(step << 4 | field.kind)
        else:
            out.append(field.kind)
            _write_varint(out, _zigzag(number))
        before = number
        if field.kind not in _BOOLEANS:
            _write_value(out, field.kind, field.value)
    out.append(0)


def _write_value(out: bytearray, kind: Kind, value: Value) -> None:
    if isinstance(value, dict):
        _write_struct(out, value)
    elif isinstance(value, Elements):
        _write_elements(out, value)
    elif isinstance(value, bytes):
        if kind is Kind.BINARY:
            _write_varint(out, len(value))
        out += value
    elif kind in _INTEGERS:
        _write_varint(out, _zigzag(value))
    else:
        out.append(value)


def _write_elements(out: bytearray, elements: Elements) -> None:
    count = len(elements.values)
    out.append(min(count, 15) << 4 | elements.kind)
    if count >= 15:
        _write_varint(out, count)
    for value in elements.values:
        _write_value(out, elements.kind, value)


def _write_varint(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1


def _from_zigzag(number: int) -> int:
    return number >> 1 ^ -(number & 1)

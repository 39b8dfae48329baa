"""Rows of any schema, decided by a seed."""

import random
import string
from collections.abc import Callable
from typing import Any

import pyarrow as pa

_FEW = ["", "a", "ä·☃", "the same words again and again " * 8]


def any_rows(schema: pa.Schema, rows: int, seed: int) -> pa.Table:
    """Values that repeat and values that do not, with nulls and empty lists where the schema has them."""
    chance = random.Random(seed)
    columns = [_column(chance, field, rows) for field in schema]
    return pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema)


def _column(chance: random.Random, field: pa.Field, rows: int) -> pa.Array:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    values = pa.array([_value(chance, field.with_type(kind)) for _ in range(rows)], kind)
    return values if kind == field.type else values.cast(field.type)


def _value(chance: random.Random, field: pa.Field) -> Any:
    kind = field.type
    if pa.types.is_null(kind) or (field.nullable and chance.random() < 0.2):
        return None
    if pa.types.is_fixed_size_list(kind):
        return [_value(chance, kind.value_field) for _ in range(kind.list_size)]
    if pa.types.is_list(kind):
        return [_value(chance, kind.value_field) for _ in range(chance.choice([0, 0, 1, 2, 5]))]
    if pa.types.is_struct(kind):
        return {inner.name: _value(chance, inner) for inner in kind}
    return _SIMPLE[str(kind)](chance)


def _text(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return chance.choice(_FEW)
    return "".join(chance.choices(string.printable, k=chance.randrange(60)))


_SIMPLE: dict[str, Callable[[random.Random], Any]] = {
    "string": _text,
    "large_string": _text,
    "binary": lambda chance: chance.randbytes(chance.randrange(40)),
    "bool": lambda chance: chance.random() < 0.5,
    "float": lambda chance: chance.choice([0.0, -0.0, float("nan"), chance.gauss(0, 1)]),
    "double": lambda chance: chance.gauss(0, 1),
    "int32": lambda chance: chance.randrange(-(2**31), 2**31),
    "int64": lambda chance: chance.choice([0, 7, chance.randrange(-(2**63), 2**63)]),
    "uint16": lambda chance: chance.randrange(2**16),
    "uint32": lambda chance: chance.randrange(2**32),
    "uint64": lambda chance: chance.randrange(2**64),
    "timestamp[us, tz=UTC]": lambda chance: chance.randrange(2**50),
}

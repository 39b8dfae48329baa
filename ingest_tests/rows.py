"""Rows that say no more than a test needs."""

from pathlib import Path

import pyarrow as pa

from ingest_assets.core.schemas import TableSpec


def blank_rows(spec: TableSpec, **known: object) -> pa.Table:
    """One row that says no more than this."""
    row = {field.name: None if field.nullable else _blank(field.type) for field in spec.schema} | known
    return pa.Table.from_pylist([row], schema=spec.schema)


def _blank(kind: pa.DataType) -> object:
    if pa.types.is_struct(kind):
        return {field.name: _blank(field.type) for field in kind}
    if pa.types.is_list(kind):
        return []
    if pa.types.is_boolean(kind):
        return False
    return "" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else 0


def zero_the_rows(path: Path) -> None:
    """As a bad disk may; the footer stays whole."""
    content = path.read_bytes()
    rows = len(content) - int.from_bytes(content[-8:-4], "little") - 8
    path.write_bytes(content[:4] + bytes(rows - 4) + content[rows:])

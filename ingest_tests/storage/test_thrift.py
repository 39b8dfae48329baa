"""Thrift's compact protocol: what is read is written back byte for byte, and nonsense is refused."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest_assets.storage.thrift import Elements, Field, Kind, NotThrift, Struct, read_struct, write_struct

NUMBERS = {Kind.I16: 15, Kind.I32: 31, Kind.I64: 63}
SIMPLE = {
    **{kind: st.integers(-(2**bits), 2**bits - 1) for kind, bits in NUMBERS.items()},
    Kind.BYTE: st.integers(0, 255),
    Kind.DOUBLE: st.binary(min_size=8, max_size=8),
    Kind.BINARY: st.binary(max_size=200),
}
ANY = st.integers(-(2**15), 2**15 - 1)  # numbers of fields; real ones are small and ascend


def _lists(inner: st.SearchStrategy[Field]) -> st.SearchStrategy[Field]:
    """Of values of one kind, fewer and more than the fifteen that fit the short form."""
    simple = st.sampled_from(sorted(SIMPLE)).flatmap(
        lambda kind: st.lists(SIMPLE[kind], max_size=20).map(lambda values: Elements(kind, list(values)))
    )
    nested = st.lists(_structs(inner), max_size=3).map(lambda found: Elements(Kind.STRUCT, list(found)))
    kinds = st.sampled_from([Kind.LIST, Kind.SET])
    return st.builds(Field, kinds, simple | nested)


def _structs(fields: st.SearchStrategy[Field]) -> st.SearchStrategy[Struct]:
    return st.dictionaries(st.integers(1, 20) | ANY, fields, max_size=6)


def _nested(inner: st.SearchStrategy[Field]) -> st.SearchStrategy[Field]:
    return _lists(inner) | _structs(inner).map(lambda found: Field(Kind.STRUCT, found))


SCALARS = st.one_of(
    st.sampled_from([Field(Kind.TRUE, True), Field(Kind.FALSE, False)]),
    *(values.map(lambda value, kind=kind: Field(kind, value)) for kind, values in SIMPLE.items()),
)
STRUCTS = _structs(st.recursive(SCALARS, _nested, max_leaves=12))


@settings(max_examples=200, deadline=None)
@given(STRUCTS)
def test_what_is_written_is_read_again(struct: Struct) -> None:
    """Every kind of value, in lists and structures within each other."""
    assert read_struct(write_struct(struct)) == struct


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_bytes_are_refused_or_written_back_as_they_were(raw: bytes) -> None:
    """Nothing in between: a footer that came out otherwise would be a damaged table."""
    try:
        found = read_struct(raw)
    except NotThrift:
        return

    assert write_struct(found) == raw


def test_a_footer_of_arrow_is_written_back_as_it_was() -> None:
    """With statistics, a dictionary, key-value metadata and two groups."""
    sink = pa.BufferOutputStream()
    rows = pa.table({"name": ["a", None, "b"] * 20, "tags": [["x"], [], None] * 20, "real": [1.5] * 60})
    pq.write_table(rows.replace_schema_metadata({"key": "value"}), sink, row_group_size=30)
    file = sink.getvalue().to_pybytes()
    raw = file[-8 - int.from_bytes(file[-8:-4], "little") : -8]

    footer = read_struct(raw)

    assert write_struct(footer) == raw
    assert footer[3].value == 60


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x15",
        b"\x15\x80",
        b"\x18\x05abc\x00",
        b"\x1b\x00\x00",
        b"\x1d\x00",
        b"\x15\x80\x00\x00",
        b"\x00\x00",
        b"\x1c" * 1000,
        b"\x19" * 1000,
    ],
    ids=[
        "nothing",
        "no number",
        "half a number",
        "half a text",
        "a map",
        "no such kind",
        "a number in a longer form",
        "more than a structure",
        "structures without end",
        "lists without end",
    ],
)
def test_what_is_no_structure_is_refused(raw: bytes) -> None:
    """By one error, whatever is wrong with it."""
    with pytest.raises(NotThrift):
        read_struct(raw)

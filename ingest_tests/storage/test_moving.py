"""Row groups that can be moved are, and all others are refused."""

import base64
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from ingest_assets.model.schemas import TableSpec
from ingest_assets.storage import parquet
from ingest_assets.storage.moving import MAGIC, NotMovable, group_of, tail_of
from ingest_assets.storage.row_groups import write_row_groups
from ingest_tests.storage.any_rows import any_rows
from ingest_tests.storage.test_row_groups import SPECS

ROWS = pa.table({"a": ["x", "y", "x"], "b": [1, 2, 3]})


def file_of(*groups: pa.Table, **settings: Any) -> memoryview:
    """A Parquet file with these row groups."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, ROWS.schema, **settings) as writer:
        for group in groups:
            writer.write_table(group)
    return memoryview(sink.getvalue()).cast("B")


class Keys(pe.KmsClient):
    """Keeps keys where everybody sees them."""

    def __init__(self, _config: pe.KmsConnectionConfig) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


def secret(*, plaintext_footer: bool) -> Any:
    """What makes a writer encrypt."""
    wanted = pe.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["a"]}, plaintext_footer=plaintext_footer
    )
    return pe.CryptoFactory(Keys).file_encryption_properties(pe.KmsConnectionConfig(), wanted)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.asset)
def test_groups_of_every_table_of_the_product_can_be_moved(spec: TableSpec) -> None:
    """Else they would silently be as slow as ever."""
    sink = pa.BufferOutputStream()
    with parquet._writer(spec, sink) as writer:
        writer.write_table(any_rows(spec.schema, 5, 1))

    assert group_of(memoryview(sink.getvalue()).cast("B")).rows == 5


def test_a_group_that_is_not_moved_is_told_of_as_it_was() -> None:
    """The file put together from the pages and the footer of one without rows is the file itself."""
    file = file_of(ROWS)
    group = group_of(file)

    tail = tail_of(file_of(), [group.moved(len(MAGIC), 0)], group.rows)

    assert MAGIC + group.pages + tail == file


@pytest.mark.parametrize(
    "file",
    [
        lambda: file_of(),
        lambda: file_of(ROWS, ROWS),
        lambda: file_of(ROWS, write_page_index=True),
        lambda: file_of(ROWS, encryption_properties=secret(plaintext_footer=False)),
        lambda: file_of(ROWS, encryption_properties=secret(plaintext_footer=True)),
        lambda: _with_a_gap(file_of(ROWS)),
        lambda: memoryview(b"PAR1 and no footer" + bytes(4) + b"PAR1"),
        lambda: memoryview(b"text"),
    ],
    ids=["none", "two", "page index", "encrypted", "signed", "gap", "no footer", "no file"],
)
def test_what_cannot_be_moved_is_refused(file: Any) -> None:
    """Offsets that nobody moves would point into other rows."""
    with pytest.raises(NotMovable):
        group_of(file())


def _with_a_gap(file: memoryview) -> memoryview:
    """With bytes between the pages and the footer that no column owns."""
    begin = len(file) - 8 - int.from_bytes(file[-8:-4], "little")
    return memoryview(bytes(file[:begin]) + b"????" + bytes(file[begin:]))


def test_an_encrypted_table_is_written_by_one_writer(tmp_path: Path) -> None:
    """It is read with its keys, as Arrow makes it."""
    path = tmp_path / "secret.parquet"
    locked = secret(plaintext_footer=False)
    open_writer = partial(pq.ParquetWriter, schema=ROWS.schema, encryption_properties=locked)

    write_row_groups(path, open_writer, [ROWS, ROWS], {})

    opened = pe.CryptoFactory(Keys).file_decryption_properties(pe.KmsConnectionConfig())
    assert path.read_bytes()[:4] == b"PARE"
    assert pq.ParquetFile(path, decryption_properties=opened).read().equals(pa.concat_tables([ROWS, ROWS]))


@pytest.mark.parametrize("first", [0, 3], ids=["first group empty", "first group full"])
def test_a_table_with_a_page_index_is_written_by_one_writer(tmp_path: Path, first: int) -> None:
    """Also when it shows only later: without rows there is no index yet."""
    path = tmp_path / "indexed.parquet"
    groups = [ROWS.slice(0, first), ROWS, ROWS]
    open_writer = partial(pq.ParquetWriter, schema=ROWS.schema, write_page_index=True)

    write_row_groups(path, open_writer, groups, {})

    assert path.read_bytes() == file_of(*groups, write_page_index=True)

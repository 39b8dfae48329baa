"""Tables as readers see them."""

from pathlib import Path

import pytest

from ingest_assets.core.items import Record
from ingest_assets.storage.parquet import Footer, write_parquet
from ingest_assets.storage.table import Table
from ingest_tests.storage.rows import SPEC, failure, rows_of


def write(path: Path, item: str, rows: int, broken: str = "") -> Path:
    """Write one batch's file with a good item and perhaps a failed one."""
    failures = {broken: failure(broken, "f")} if broken else {}
    footer = Footer("1", "c", {item: Record("f", rows)}, failures)
    write_parquet(path, SPEC, [rows_of(item, 1, rows)], footer.as_metadata())
    return path


def test_a_table_over_batches_is_the_union_of_its_files(tmp_path: Path) -> None:
    """This holds for rows, records and failures."""
    first = write(tmp_path / "b1.parquet", "a", 4)
    second = write(tmp_path / "b2.parquet", "b", 2, broken="x")
    table = Table(SPEC.asset, (first, second))

    assert table.scan().collect()["doc_id"].to_list() == ["a"] * 4 + ["b"] * 2
    assert table.records == {"a": Record("f", 4), "b": Record("f", 2)}
    assert set(table.failures) == {"x"}


def test_a_damaged_file_has_no_records(tmp_path: Path) -> None:
    """Other files keep theirs."""
    torn, whole = write(tmp_path / "b1.parquet", "a", 4), write(tmp_path / "b2.parquet", "b", 2)

    torn.write_bytes(torn.read_bytes()[:-9])

    assert Table(SPEC.asset, (torn, whole)).records == {"b": Record("f", 2)}


@pytest.mark.parametrize("name", ["[2024] docs", "what?", "a*b", "year=2024"])
def test_a_table_is_read_from_a_folder_with_any_name(tmp_path: Path, name: str) -> None:
    """The path is not used as a pattern."""
    path = write(tmp_path / name / "b1.parquet", "a", 4)

    frame = Table(SPEC.asset, (path,)).scan().collect()

    assert frame["doc_id"].to_list() == ["a"] * 4
    assert frame.columns == SPEC.schema.names

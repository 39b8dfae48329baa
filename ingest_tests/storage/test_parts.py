"""Each finished item is stored on disk at once."""

from pathlib import Path

import pyarrow.parquet as pq

from ingest_assets.core.items import Record
from ingest_assets.core.layout import Layout
from ingest_assets.storage.table import Parts
from ingest_tests.storage.rows import BATCH, SPEC, rows_of


def parts_of(layout: Layout) -> Parts:
    """The parts of the mixed table."""
    return Parts(layout, SPEC, BATCH)


def test_the_footer_of_a_part_names_its_item(layout: Layout) -> None:
    """After a crash, the parts alone show which items are done."""
    parts = parts_of(layout)

    parts.write("docs:ä/b.md", "f1", rows_of("docs:ä/b.md", 1, 2))
    parts.write("docs:c.md", "f2", rows_of("docs:c.md", 1, 5))

    again = parts_of(layout)
    assert again.records() == {"docs:ä/b.md": Record("f1", 2), "docs:c.md": Record("f2", 5)}
    assert again.read("docs:c.md").equals(rows_of("docs:c.md", 1, 5))


def test_a_later_part_replaces_an_earlier_one(layout: Layout) -> None:
    """A document can change again before the commit."""
    parts = parts_of(layout)

    parts.write("a", "f1", rows_of("a", 1, 2))
    parts.write("a", "f2", rows_of("a", 2, 3))

    assert parts.records() == {"a": Record("f2", 3)}
    assert parts.read("a").num_rows == 3


def test_a_damaged_part_is_ignored(layout: Layout) -> None:
    """Its item runs again; other parts are kept."""
    parts = parts_of(layout)
    torn = parts.write("torn", "f", rows_of("torn", 1, 2))
    parts.write("whole", "f", rows_of("whole", 1, 2))

    torn.write_bytes(torn.read_bytes()[:-7])
    (torn.parent / "empty.parquet").touch()

    assert parts.records() == {"whole": Record("f", 2)}


def test_a_scratch_file_is_not_a_part(layout: Layout) -> None:
    """A killed writer leaves one behind."""
    parts = parts_of(layout)
    part = parts.write("a", "f", rows_of("a", 1, 2))

    part.rename(part.with_name(f".{part.name}.0123.tmp"))

    assert parts.records() == {}


def test_clearing_removes_all_parts_and_is_harmless_twice(layout: Layout) -> None:
    """Other batches keep theirs."""
    other = Parts(layout, SPEC, "2024-05-01-0002")
    other.write("b", "f", rows_of("b", 1, 1))
    parts = parts_of(layout)
    parts.write("a", "f", rows_of("a", 1, 1))

    parts.clear()
    parts.clear()

    assert parts.records() == {}
    assert other.records() == {"b": Record("f", 1)}


def test_equal_items_give_equal_parts_in_any_home(tmp_path: Path) -> None:
    """Nothing in a part depends on where or when it was made."""
    written = [
        parts_of(Layout(tmp_path / home)).write("a", "f", rows_of("a", 1, 4)) for home in ("one", "two")
    ]

    assert written[0].read_bytes() == written[1].read_bytes()
    assert pq.read_metadata(written[0]).num_rows == 4

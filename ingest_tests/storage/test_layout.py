"""Every path of a home is built in one place."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.core.layout import Layout

LAYOUT = Layout(Path("/home"))


def test_a_table_is_one_file_per_asset_and_batch() -> None:
    """Readers of the tables depend on this path."""
    assert LAYOUT.table("chunks", "2024-05-01-0001") == Path("/home/data/chunks/2024-05-01-0001.parquet")
    assert LAYOUT.table("embeddings/dense", "b") == Path("/home/data/embeddings/dense/b.parquet")


def test_parts_are_stored_outside_the_table_folders() -> None:
    """`data/chunks/*.parquet` must match tables only."""
    part = LAYOUT.part("chunks", "b", "docs:a.md")

    assert part.parent == Path("/home/data/chunks/.parts/b") == LAYOUT.parts("chunks", "b")
    assert part.suffix == ".parquet"


@given(st.text(st.characters(), min_size=1))
def test_the_part_of_any_item_has_a_valid_file_name(item_id: str) -> None:
    """Ids are paths in any script and length; file names are hashes of them."""
    name = LAYOUT.part("chunks", "b", item_id).name

    assert len(name) == 64 + len(".parquet")
    assert name.isascii()
    assert LAYOUT.part("chunks", "b", item_id + "x").name != name

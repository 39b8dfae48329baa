"""Tables of a family; each names its model set in the footer."""

from dataclasses import replace

from ingest_assets.core.layout import Layout
from ingest_assets.storage.model_sets import Family, SetState, read_table_set
from ingest_assets.storage.table import Parts, commit
from ingest_tests.storage.rows import SPEC, commit_of, fingerprint_of, rows_of

ASSET = SPEC.asset
BATCHES = ("b1", "b2", "b3")


def write(layout: Layout, asset: str, batch: str, set_id: str) -> None:
    """Write a table of this set."""
    spec = replace(SPEC, asset=asset)
    Parts(layout, spec, batch).write("docs:a", fingerprint_of(1, 2), rows_of("docs:a", 1, 2))
    commit(
        layout,
        replace(commit_of({"docs:a": fingerprint_of(1, 2)}), spec=spec, batch=batch, extra={"set": set_id}),
    )


def fill(family: Family, set_id: str, *batches: str) -> None:
    """Write tables of a set for these batches, as a run does."""
    for batch in batches:
        write(family.layout, family.claim(SetState(set_id)), batch, set_id)


def sets_by_batch(family: Family, asset: str = ASSET) -> dict[str, str]:
    """Return the set of each batch's table."""
    paths = family.layout.asset_folder(asset).glob("*.parquet")
    return {path.stem: state.set for path in paths if (state := read_table_set(path)) is not None}

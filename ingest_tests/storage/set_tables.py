"""Tables of a family, each of a set that it names."""

from dataclasses import replace

from ingest_assets.core.layout import Layout
from ingest_assets.storage.model_sets import Family, SetMark, set_of
from ingest_assets.storage.table import Parts, commit
from ingest_tests.storage.rows import SPEC, commit_of, mark, rows_of

ASSET = SPEC.asset
BATCHES = ("b1", "b2", "b3")


def write(layout: Layout, asset: str, batch: str, set_id: str) -> None:
    """A table that says which set it is of."""
    spec = replace(SPEC, asset=asset)
    Parts(layout, spec, batch).write("docs:a", mark(1, 2), rows_of("docs:a", 1, 2))
    commit(layout, replace(commit_of({"docs:a": mark(1, 2)}), spec=spec, batch=batch, extra={"set": set_id}))


def fill(family: Family, set_id: str, *batches: str) -> None:
    """What runs with these settings do."""
    for batch in batches:
        write(family.layout, family.claim(SetMark(set_id)), batch, set_id)


def seen(family: Family, asset: str = ASSET) -> dict[str, str]:
    """What a reader finds: batches and the sets they are of."""
    paths = family.layout.asset_folder(asset).glob("*.parquet")
    return {path.stem: found.set for path in paths if (found := set_of(path)) is not None}

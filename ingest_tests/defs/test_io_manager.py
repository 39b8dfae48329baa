"""The IO manager: lazy scans of one or many partitions, and the metadata for the UI."""

import dagster as dg
import polars as pl
import pytest

from ingest_assets.app.home import Home
from ingest_assets.app.stage_run import Staged
from ingest_assets.core.errors import TableMissing
from ingest_assets.core.items import StageOutcome
from ingest_assets.core.schemas import CHUNKS
from ingest_assets.defs.io_manager import ALLOW_MISSING, parquet_tables
from ingest_assets.defs.keys import batches
from ingest_assets.defs.resources import HomeResource
from ingest_assets.intake.schema import batches as known_batches
from ingest_assets.storage.table import Commit, Parts, Table
from ingest_tests.app.tables import BATCHES, chunk_rows, put


def _load(home: Home, instance: dg.DagsterInstance, keys: list[str], kind: type, **metadata: object):
    """Return what an asset below `chunks` gets for these partitions."""
    instance.add_dynamic_partitions("batches", list(BATCHES))
    with home.ledger.begin() as connection:
        for key in BATCHES:
            connection.execute(known_batches.insert().prefix_with("OR IGNORE").values(key=key, revision=1))
    loaded: list = []
    chunks = dg.AssetSpec("chunks", partitions_def=batches)

    def use(table):
        loaded.append(table)

    use.__annotations__ = {"table": kind}
    below = dg.asset(
        name="below",
        ins={"table": dg.AssetIn("chunks", metadata=metadata, partition_mapping=dg.AllPartitionMapping())}
        if len(keys) > 1
        else {"table": dg.AssetIn("chunks", metadata=metadata)},
        partitions_def=None if len(keys) > 1 else batches,
        io_manager_key="mem",
    )(use)
    result = dg.materialize(
        [chunks, below],
        selection=[below],
        instance=instance,
        partition_key=None if len(keys) > 1 else keys[0],
        resources={"home": HomeResource(), "io_manager": parquet_tables(), "mem": dg.mem_io_manager},
        raise_on_error=True,
    )
    assert result.success
    return loaded[0]


def test_one_partition_is_loaded_as_a_table_or_a_lazy_frame(home: Home, instance: dg.DagsterInstance):
    """Nothing is read until the asset collects it."""
    put(home, CHUNKS, BATCHES[0], {"d": chunk_rows("d", ["a", "b"])})

    table = _load(home, instance, [BATCHES[0]], Table)
    frame = _load(home, instance, [BATCHES[0]], pl.LazyFrame)

    assert isinstance(table, Table)
    assert isinstance(frame, pl.LazyFrame)
    assert frame.select("chunk_id").collect().to_series().to_list() == ["a", "b"]


def test_many_partitions_are_one_scan(home: Home, instance: dg.DagsterInstance):
    """An asset of the whole corpus reads all batches at once."""
    for number, batch in enumerate(BATCHES):
        put(home, CHUNKS, batch, {f"d{number}": chunk_rows(f"d{number}", [f"c{number}"])})

    frame = _load(home, instance, list(BATCHES), pl.LazyFrame)

    assert frame.select("chunk_id").collect().to_series().to_list() == ["c0", "c1"]


def test_a_missing_partition_is_an_error_that_says_what_to_do(home: Home, instance: dg.DagsterInstance):
    """Reading less than requested would lose data silently."""
    put(home, CHUNKS, BATCHES[0], {"d": chunk_rows("d", ["a"])})

    with pytest.raises(TableMissing, match=f"chunks has no table for batch {BATCHES[1]}. Run `ingest all`"):
        _load(home, instance, list(BATCHES), pl.LazyFrame)


def test_missing_partitions_can_be_allowed(home: Home, instance: dg.DagsterInstance):
    """For assets that read what exists."""
    put(home, CHUNKS, BATCHES[0], {"d": chunk_rows("d", ["a"])})

    frame = _load(home, instance, list(BATCHES), pl.LazyFrame, **{ALLOW_MISSING: True})

    assert frame.collect().height == 1


def test_output_is_committed_released_and_described(home: Home, instance: dg.DagsterInstance):
    """Row count, schema, path, size and a preview, on the materialization."""
    instance.add_dynamic_partitions("batches", [BATCHES[0]])
    released: list[bool] = []
    Parts(home.layout, CHUNKS, BATCHES[0]).write("d", "print", chunk_rows("d", ["a", "b|c"]))
    staged = Staged(
        Commit(CHUNKS, BATCHES[0], "1", "config", {"d": "print"}),
        StageOutcome(stage="chunks"),
        lambda: released.append(True),
    )

    @dg.asset(name="chunks", partitions_def=batches)
    def chunks():
        return staged

    result = dg.materialize(
        [chunks],
        instance=instance,
        partition_key=BATCHES[0],
        resources={"home": HomeResource(), "io_manager": parquet_tables()},
    )

    (event,) = result.get_asset_materialization_events()
    metadata = event.step_materialization_data.materialization.metadata
    path = home.layout.table("chunks", BATCHES[0])
    assert released == [True]
    assert metadata["dagster/partition_row_count"].value == 2
    assert metadata["dagster/uri"].value == path.as_uri()
    assert metadata["size_bytes"].value == path.stat().st_size
    assert {column.name for column in metadata["dagster/column_schema"].value.columns} == set(
        CHUNKS.schema.names
    )
    assert "text of b\\|c" in metadata["preview"].value

"""Statistics over all lexical tables: an asset, a check and a sensor of their own."""

import os
import time
from collections.abc import Mapping

import dagster as dg
import polars as pl
import pytest
from dagster._core.storage.defs_state.base import set_defs_state_storage

from ingest_assets.defs.build import build_definitions
from ingest_assets.defs.corpus import LEXICAL_STATS_JOB
from ingest_assets.defs.home import Home
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.embedders.bm25 import read_stats
from ingest_assets.model.embedding import LexicalOptions
from ingest_assets.model.schemas import LEXICAL
from ingest_assets.stages.lexical_stats import are_current, refresh_stats, stats_path
from ingest_assets.storage.tables import Table
from ingest_tests.defs.conftest import BATCHES, put
from ingest_tests.embedders.texts import lexical_rows, stats_by_hand

FIRST = {"a": "bees swarm in spring", "b": "bees rest, bees winter"}
SECOND = {"c": "spring pollen", "d": "..."}


def write(home: Home, batch: str, texts: Mapping[str, str]) -> None:
    """A batch's lexical table with one document."""
    put(home, LEXICAL, batch, {f"doc {'/'.join(texts)}": lexical_rows(texts, LexicalOptions())})


def refreshed(home: Home) -> bytes:
    """The statistics' file, made again."""
    refresh_stats(home.layout, home.tables("lexical"))
    return stats_path(home.layout).read_bytes()


@pytest.fixture
def two_batches(home: Home) -> Home:
    """A home with two lexical tables."""
    write(home, BATCHES[0], FIRST)
    write(home, BATCHES[1], SECOND)
    return home


def test_the_statistics_are_those_of_all_chunks(two_batches: Home):
    """By hand, over both batches; a chunk without terms counts as one."""
    refreshed(two_batches)

    found = read_stats(stats_path(two_batches.layout))

    assert found == stats_by_hand(lexical_rows(FIRST | SECOND, LexicalOptions()))
    assert found.chunks == 4
    terms = pl.read_parquet(stats_path(two_batches.layout))
    assert terms["term"].to_list() == sorted(found.document_frequencies)
    assert terms.filter(pl.col("term") == "bee")["total_count"].to_list() == [3]


def test_equal_tables_give_equal_bytes(two_batches: Home):
    """Made at another time, after another order of work."""
    before = refreshed(two_batches)
    write(two_batches, BATCHES[1], FIRST)
    changed = refreshed(two_batches)
    write(two_batches, BATCHES[1], SECOND)

    assert changed != before
    assert refreshed(two_batches) == before


def test_a_document_that_leaves_takes_its_terms_along(two_batches: Home):
    """Also the last one."""
    refreshed(two_batches)
    put(two_batches, LEXICAL, BATCHES[0], {})
    put(two_batches, LEXICAL, BATCHES[1], {})

    refreshed(two_batches)

    assert read_stats(stats_path(two_batches.layout)).chunks == 0
    assert pl.read_parquet(stats_path(two_batches.layout)).height == 0


def test_statistics_that_are_damaged_are_made_again(two_batches: Home):
    """They are derived."""
    whole = refreshed(two_batches)
    stats_path(two_batches.layout).write_bytes(whole[:-20])

    assert refreshed(two_batches) == whole


def test_statistics_of_current_tables_are_left_alone(two_batches: Home):
    """Asking twice costs footers."""
    first = refresh_stats(two_batches.layout, two_batches.tables("lexical"))
    again = refresh_stats(two_batches.layout, two_batches.tables("lexical"))

    assert (first.changed, again.changed) == (True, False)
    assert first.rows == again.rows
    assert not are_current(two_batches.layout, Table("embeddings/lexical", ()))


def definitions() -> dg.Definitions:
    """Resolved apart from instances that earlier test contexts left behind."""
    with set_defs_state_storage(None):
        found = build_definitions()
        found.get_repository_def()
        return found


def look(instance: dg.DagsterInstance, cursor: str | None = None):
    """One evaluation of the sensor."""
    sensor = definitions().resolve_sensor_def("lexical_tables")
    resources = {"home": HomeResource()}
    with dg.build_sensor_context(instance=instance, cursor=cursor, resources=resources) as context:
        return sensor(context)


def test_the_job_makes_the_asset_and_its_check(two_batches: Home, instance: dg.DagsterInstance):
    """With the numbers that people look for."""
    result = definitions().resolve_job_def(LEXICAL_STATS_JOB).execute_in_process(instance=instance)

    (event,) = result.get_asset_materialization_events()
    metadata = event.step_materialization_data.materialization.metadata
    (check,) = result.get_asset_check_evaluations()
    assert (metadata["chunks"].value, metadata["documents"].value) == (4, 2)
    assert metadata["dagster/row_count"].value == 6
    assert (check.check_name, check.passed) == ("lexical_stats_cover_every_batch", True)


def test_the_sensor_asks_once_for_each_change_and_explains_its_silence(
    home: Home, instance: dg.DagsterInstance
):
    """A change back to what was is a change."""
    nothing = look(instance)
    write(home, BATCHES[0], FIRST)
    first = look(instance)
    silent = look(instance, first.cursor)
    refreshed(home)
    os.utime(home.layout.table(LEXICAL.asset, BATCHES[0]), (1, 1))
    touched = look(instance, first.cursor)

    assert nothing.skip_reason.skip_message == "There is no lexical table yet."
    assert [request.run_key for request in first.run_requests] == [first.cursor]
    assert "No lexical table has changed" in silent.skip_reason.skip_message
    assert "of these tables already" in touched.skip_reason.skip_message
    assert touched.cursor not in (None, first.cursor)


def test_the_sensor_waits_while_batches_run_but_not_for_ever(two_batches: Home, instance: dg.DagsterInstance):
    """One run of the statistics for many batches, and some statistics in a week of ingestion."""
    job = definitions().resolve_job_def("ingest_all")
    instance.create_run_for_job(
        job, tags={"dagster/partition": BATCHES[0]}, status=dg.DagsterRunStatus.STARTED
    )

    waiting = look(instance)
    refreshed(two_batches)
    write(two_batches, BATCHES[1], FIRST)
    long_ago = time.time() - 7200
    os.utime(stats_path(two_batches.layout), (long_ago, long_ago))
    overdue = look(instance)

    assert "waiting for 1 runs" in waiting.skip_reason.skip_message
    assert waiting.cursor is None
    assert len(overdue.run_requests) == 1

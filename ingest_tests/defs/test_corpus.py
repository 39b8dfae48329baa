"""Statistics over all lexical tables: an asset, a check and a sensor of their own."""

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from dagster._core.storage.defs_state.base import set_defs_state_storage

from ingest_assets.app.home import Home
from ingest_assets.core.schemas import LEXICAL
from ingest_assets.defs import automation as corpus
from ingest_assets.defs.automation import LEXICAL_STATS_JOB
from ingest_assets.defs.build import build_definitions
from ingest_assets.defs.resources import HomeResource
from ingest_assets.search.bm25 import read_stats
from ingest_assets.settings.embeddings import LexicalOptions
from ingest_assets.stages.lexical_stats import are_current, refresh_stats, stats_of, stats_path
from ingest_assets.storage.table import Table
from ingest_tests.app.tables import BATCHES, put
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


def test_statistics_of_other_tables_than_the_stored_ones_are_counted(two_batches: Home):
    """Those of a set in the making are stored nowhere."""
    refreshed(two_batches)
    both = two_batches.tables("lexical")
    first = Table(both.asset, both.paths[:1])

    assert stats_of(two_batches.layout, first) == stats_by_hand(lexical_rows(FIRST, LexicalOptions()))
    assert stats_of(two_batches.layout, both) == read_stats(stats_path(two_batches.layout))


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


def test_the_sensor_asks_for_each_change_and_explains_its_silence(home: Home, instance: dg.DagsterInstance):
    """A change back to what was is a change, and lost statistics are one."""
    nothing = look(instance)
    write(home, BATCHES[0], FIRST)
    first = look(instance)
    refreshed(home)
    made = look(instance, first.cursor)
    silent = look(instance, made.cursor)
    os.utime(home.layout.table(LEXICAL.asset, BATCHES[0]), (1, 1))
    touched = look(instance, made.cursor)
    stats_path(home.layout).unlink()
    lost = look(instance, touched.cursor)

    assert nothing.skip_reason.skip_message == "There is no lexical table yet."
    assert (len(first.run_requests), first.cursor) == (1, None)
    assert "of these tables already" in made.skip_reason.skip_message
    assert "No lexical table has changed" in silent.skip_reason.skip_message
    assert "of these tables already" in touched.skip_reason.skip_message
    assert touched.cursor not in (None, made.cursor)
    assert len(lost.run_requests) == 1


def fail(instance: dg.DagsterInstance) -> None:
    """A run of the statistics that could not write them."""
    job = definitions().resolve_job_def(LEXICAL_STATS_JOB)
    assert not job.execute_in_process(instance=instance, raise_on_error=False).success


@pytest.fixture
def in_the_way(two_batches: Home) -> Path:
    """A file where the statistics' folder should be."""
    path = stats_path(two_batches.layout).parent
    path.touch()
    return path


def test_statistics_that_could_not_be_made_are_asked_for_again(
    in_the_way: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
):
    """The tables are as they were then, and the statistics are not theirs; success ends the matter."""
    first = look(instance)
    fail(instance)
    soon = look(instance, first.cursor)
    monkeypatch.setattr(corpus, "_PAUSES_S", (0.0, 0.0, 0.0))
    later = look(instance, soon.cursor)
    in_the_way.unlink()
    definitions().resolve_job_def(LEXICAL_STATS_JOB).execute_in_process(instance=instance)
    done = look(instance, later.cursor)

    assert re.search(
        r"have changed; run \S+ of the statistics did not succeed, the next is asked for at [\d:]+ UTC",
        soon.skip_reason.skip_message,
    )
    assert (soon.cursor, later.cursor) == (None, None)
    assert [request.run_key for request in later.run_requests] == [None]
    assert "of these tables already" in done.skip_reason.skip_message
    assert corpus.failed_runs(instance) == ([], 0.0)


def test_each_failure_in_a_row_is_given_a_longer_pause(in_the_way: Path, instance: dg.DagsterInstance):
    """Up to an hour, and no longer than that."""
    pauses = []
    for _ in range(5):
        fail(instance)
        pauses.append(corpus.failed_runs(instance)[1] - time.time())

    assert [round(pause, -1) for pause in pauses] == [60, 300, 900, 3600, 3600]


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED])
def test_nobody_asks_for_statistics_that_a_run_is_to_make(
    two_batches: Home, instance: dg.DagsterInstance, status: dg.DagsterRunStatus
):
    """One that has not begun counts; one that was cancelled does not, after a pause."""
    job = definitions().resolve_job_def(LEXICAL_STATS_JOB)
    run = instance.create_run_for_job(job, status=status)

    waiting = look(instance)
    instance.report_run_canceled(run)
    cancelled = look(instance, waiting.cursor)

    assert f"run {run.run_id} is to make the statistics" in waiting.skip_reason.skip_message
    assert (waiting.cursor, cancelled.cursor) == (None, None)
    assert f"run {run.run_id} of the statistics did not succeed" in cancelled.skip_reason.skip_message


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

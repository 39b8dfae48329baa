"""Statistics of all lexical tables: an asset, a check and a sensor."""

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
    """Write a batch's lexical table with one document."""
    put(home, LEXICAL, batch, {f"doc {'/'.join(texts)}": lexical_rows(texts, LexicalOptions())})


def refreshed(home: Home) -> bytes:
    """Compute the statistics again and return their path."""
    refresh_stats(home.layout, home.tables("lexical"))
    return stats_path(home.layout).read_bytes()


@pytest.fixture
def two_batches(home: Home) -> Home:
    """A home with two lexical tables."""
    write(home, BATCHES[0], FIRST)
    write(home, BATCHES[1], SECOND)
    return home


def test_the_statistics_are_those_of_all_chunks(two_batches: Home):
    """Compared with a manual count over both batches; a chunk without terms counts as one."""
    refreshed(two_batches)

    found = read_stats(stats_path(two_batches.layout))

    assert found == stats_by_hand(lexical_rows(FIRST | SECOND, LexicalOptions()))
    assert found.chunks == 4
    terms = pl.read_parquet(stats_path(two_batches.layout))
    assert terms["term"].to_list() == sorted(found.document_frequencies)
    assert terms.filter(pl.col("term") == "bee")["total_count"].to_list() == [3]


def test_statistics_of_an_inactive_set_are_computed(two_batches: Home):
    """They are not stored."""
    refreshed(two_batches)
    both = two_batches.tables("lexical")
    first = Table(both.asset, both.paths[:1])

    assert stats_of(two_batches.layout, first) == stats_by_hand(lexical_rows(FIRST, LexicalOptions()))
    assert stats_of(two_batches.layout, both) == read_stats(stats_path(two_batches.layout))


def test_equal_tables_give_equal_bytes(two_batches: Home):
    """Also if they were written at other times, in another order."""
    before = refreshed(two_batches)
    write(two_batches, BATCHES[1], FIRST)
    changed = refreshed(two_batches)
    write(two_batches, BATCHES[1], SECOND)

    assert changed != before
    assert refreshed(two_batches) == before


def test_a_removed_document_takes_its_terms_along(two_batches: Home):
    """Also the last one."""
    refreshed(two_batches)
    put(two_batches, LEXICAL, BATCHES[0], {})
    put(two_batches, LEXICAL, BATCHES[1], {})

    refreshed(two_batches)

    assert read_stats(stats_path(two_batches.layout)).chunks == 0
    assert pl.read_parquet(stats_path(two_batches.layout)).height == 0


def test_damaged_statistics_are_rebuilt(two_batches: Home):
    """They are derived."""
    whole = refreshed(two_batches)
    stats_path(two_batches.layout).write_bytes(whole[:-20])

    assert refreshed(two_batches) == whole


def test_current_statistics_are_not_computed_again(two_batches: Home):
    """The second call reads only footers."""
    first = refresh_stats(two_batches.layout, two_batches.tables("lexical"))
    again = refresh_stats(two_batches.layout, two_batches.tables("lexical"))

    assert (first.changed, again.changed) == (True, False)
    assert first.rows == again.rows
    assert not are_current(two_batches.layout, Table("embeddings/lexical", ()))


def definitions() -> dg.Definitions:
    """Return the definitions, resolved independently of instances of earlier test contexts."""
    with set_defs_state_storage(None):
        found = build_definitions()
        found.get_repository_def()
        return found


def look(instance: dg.DagsterInstance, cursor: str | None = None):
    """Evaluate the sensor once."""
    sensor = definitions().resolve_sensor_def("lexical_tables")
    resources = {"home": HomeResource()}
    with dg.build_sensor_context(instance=instance, cursor=cursor, resources=resources) as context:
        return sensor(context)


def test_the_job_computes_the_asset_and_its_check(two_batches: Home, instance: dg.DagsterInstance):
    """With the numbers of the statistics."""
    result = definitions().resolve_job_def(LEXICAL_STATS_JOB).execute_in_process(instance=instance)

    (event,) = result.get_asset_materialization_events()
    metadata = event.step_materialization_data.materialization.metadata
    (check,) = result.get_asset_check_evaluations()
    assert (metadata["chunks"].value, metadata["documents"].value) == (4, 2)
    assert metadata["dagster/row_count"].value == 6
    assert (check.check_name, check.passed) == ("lexical_stats_cover_every_batch", True)


def test_the_sensor_requests_a_run_for_each_change_and_explains_skips(
    home: Home, instance: dg.DagsterInstance
):
    """Changing back is also a change, and so are lost statistics."""
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
    assert "up to date" in made.skip_reason.skip_message
    assert "No lexical table has changed" in silent.skip_reason.skip_message
    assert "up to date" in touched.skip_reason.skip_message
    assert touched.cursor not in (None, made.cursor)
    assert len(lost.run_requests) == 1


def fail(instance: dg.DagsterInstance) -> None:
    """Fail a run of the statistics because they cannot be written."""
    job = definitions().resolve_job_def(LEXICAL_STATS_JOB)
    assert not job.execute_in_process(instance=instance, raise_on_error=False).success


@pytest.fixture
def in_the_way(two_batches: Home) -> Path:
    """A file where the statistics' folder should be."""
    path = stats_path(two_batches.layout).parent
    path.touch()
    return path


def test_failed_statistics_are_requested_again(
    in_the_way: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
):
    """The tables have not changed since, but the statistics are not current; a success resets the backoff."""
    first = look(instance)
    fail(instance)
    soon = look(instance, first.cursor)
    monkeypatch.setattr(corpus, "_BACKOFF_S", (0.0, 0.0, 0.0))
    later = look(instance, soon.cursor)
    in_the_way.unlink()
    definitions().resolve_job_def(LEXICAL_STATS_JOB).execute_in_process(instance=instance)
    done = look(instance, later.cursor)

    assert re.search(
        r"have changed; run \S+ of the statistics did not succeed; retrying at [\d:]+ UTC",
        soon.skip_reason.skip_message,
    )
    assert (soon.cursor, later.cursor) == (None, None)
    assert [request.run_key for request in later.run_requests] == [None]
    assert "up to date" in done.skip_reason.skip_message
    assert corpus.failed_runs(instance) == ([], 0.0)


def test_each_failure_in_a_row_gets_a_longer_pause(in_the_way: Path, instance: dg.DagsterInstance):
    """Up to an hour."""
    pauses = []
    for _ in range(5):
        fail(instance)
        pauses.append(corpus.failed_runs(instance)[1] - time.time())

    assert [round(pause, -1) for pause in pauses] == [60, 300, 900, 3600, 3600]


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED])
def test_no_request_while_a_run_of_the_statistics_is_queued_or_running(
    two_batches: Home, instance: dg.DagsterInstance, status: dg.DagsterRunStatus
):
    """One that has not begun counts; a cancelled one is retried after a pause."""
    job = definitions().resolve_job_def(LEXICAL_STATS_JOB)
    run = instance.create_run_for_job(job, status=status)

    waiting = look(instance)
    instance.report_run_canceled(run)
    cancelled = look(instance, waiting.cursor)

    assert f"run {run.run_id} of the statistics is queued or running" in waiting.skip_reason.skip_message
    assert (waiting.cursor, cancelled.cursor) == (None, None)
    assert f"run {run.run_id} of the statistics did not succeed" in cancelled.skip_reason.skip_message


def test_the_sensor_waits_for_running_batches_for_an_hour_at_most(
    two_batches: Home, instance: dg.DagsterInstance
):
    """One computation for many batches, but also some during a week of ingestion."""
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

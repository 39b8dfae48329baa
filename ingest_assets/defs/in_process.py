"""Run batches in this process through Dagster, for commands."""

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from ingest_assets.app.driver import COUNTS, BatchResult, run_tags
from ingest_assets.app.home import Home
from ingest_assets.core.errors import StageError
from ingest_assets.defs.automation import INGEST_ALL, LEXICAL_STATS_JOB
from ingest_assets.defs.build import build_definitions
from ingest_assets.defs.instance import apply_pools, environment, open_instance
from ingest_assets.defs.keys import PARTITION, asset_key, batches
from ingest_assets.defs.orphans import fail_orphaned_runs
from ingest_assets.defs.resources import HomeResource
from ingest_assets.settings.read import settings_to_json

_TAGS = {
    # The daemon must not restart a run that the user of the command has interrupted.
    "dagster/max_retries": "0",
    # The web UI needs this tag to list the run under its job.
    ".dagster/repository": "__repository__@ingest_assets.definitions",
}
_OUR_ERROR = re.compile(r"^ingest_assets\.[\w.]+: ")


class InProcess:
    """Runs batches of one home; implements the driver's `Executor`. The instance is open inside `with`.

    `with_settings` passes the home's settings to the steps, for a home whose settings differ from its file.
    `is_interrupted` is asked before each run, because Dagster loses an interrupt that arrives while it
    closes a run. `during_run` is entered for each run.
    """

    def __init__(
        self,
        home: Home,
        *,
        progress: str = "log",
        with_settings: bool = False,
        is_interrupted: Callable[[], bool] = lambda: False,
        during_run: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._home, self._is_interrupted, self._during_run = home, is_interrupted, during_run
        settings = settings_to_json(home.settings) if with_settings else ""
        self._resource = HomeResource(path=str(home.layout.home), settings=settings)
        self._progress = progress
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "InProcess":
        self._open.enter_context(_restored_environment(self._home))
        self._instance = self._open.enter_context(open_instance(self._home.layout, for_command=True))
        fail_orphaned_runs(self._instance)
        apply_pools(self._instance, self._home.settings.pools)
        self._definitions = build_definitions(
            self._resource, progress=self._progress, updates_statistics=False
        )
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()

    def run(self, batch: str, stages: Sequence[str], options: Mapping[str, Any], reason: str) -> BatchResult:
        """Run these stages of a batch as one Dagster run."""
        home, instance = self._home, self._instance
        instance.add_dynamic_partitions(batches.name or "", [batch])
        steps = {asset_key(stage).to_python_identifier(): stage for stage in stages}
        result = self._execute(
            INGEST_ALL,
            {step: {"config": dict(options)} for step in steps if options},
            partition_key=batch,
            asset_selection=[asset_key(stage) for stage in stages],
            tags=run_tags(home, batch, reason) | _TAGS,
        )
        numbers: dict[str, dict[str, float]] = {}
        errors: list[StageError] = []
        for step, metadata in _stage_metadata(result):
            numbers[steps[step]] = {name: metadata[name].value for name in (*COUNTS, "wall_seconds")}
            errors += [StageError.model_validate(error) for error in metadata["errors"].value]
        broken = None if result.success else _failure_reason(result)
        ran_concurrently = broken is not None and _ran_concurrently(instance, batch, result.run_id)
        return BatchResult(numbers, errors, broken, ran_concurrently)

    def make_statistics(self) -> str | None:
        """Compute the corpus statistics as one Dagster run."""
        result = self._execute(LEXICAL_STATS_JOB, {}, tags=_TAGS)
        return None if result.success else _failure_reason(result)

    def _execute(self, job: str, ops: Mapping[str, Any], **arguments: Any) -> dg.ExecuteInProcessResult:
        """Execute a run. Dagster's various forms of an interrupt become `KeyboardInterrupt`.

        Dagster's events are shown in the web UI, not in the output of the command.
        """
        if self._is_interrupted():
            raise KeyboardInterrupt
        quiet = {"console": {"config": {"log_level": "CRITICAL"}}}
        try:
            with self._during_run():
                result = self._definitions.resolve_job_def(job).execute_in_process(
                    instance=self._instance,
                    run_config={"ops": dict(ops), "loggers": quiet},
                    raise_on_error=False,
                    **arguments,
                )
        except dg.DagsterExecutionInterruptedError:
            raise KeyboardInterrupt from None
        ends = [event for event in result.all_events if event.event_type_value == "PIPELINE_FAILURE"]
        reasons = [end.job_failure_data.failure_reason for end in ends]
        if any(reason is not None and reason.name == "UNEXPECTED_TERMINATION" for reason in reasons):
            raise KeyboardInterrupt
        return result


@contextlib.contextmanager
def _restored_environment(home: Home) -> Iterator[None]:
    """Restore the environment variables that opening a Dagster instance sets."""
    before = {name: os.environ.get(name) for name in environment(home.layout)}
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _ran_concurrently(instance: dg.DagsterInstance, batch: str, run_id: str) -> bool:
    """True if another run worked on the batch at the same time."""
    of_batch = dg.RunsFilter(tags={PARTITION: batch})
    records = {record.dagster_run.run_id: record for record in instance.get_run_records(of_batch)}
    began_at = records.pop(run_id).start_time or 0.0
    others = [record for record in records.values() if record.start_time is not None]
    return any(other.end_time is None or other.end_time >= began_at for other in others)


def _stage_metadata(result: dg.ExecuteInProcessResult) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the step and the numbers of each stage, whether it finished or was stopped."""
    for event in result.get_asset_materialization_events():
        yield str(event.step_key), event.step_materialization_data.materialization.metadata
    for event in result.all_events:
        failure = event.step_failure_data.user_failure_data if event.is_step_failure else None
        if failure is not None and "scheduled" in failure.metadata:
            yield str(event.step_key), failure.metadata


def _failure_reason(result: dg.ExecuteInProcessResult) -> str:
    """Return the cause of a failed run: a blocking check, or the error inside Dagster's wrapper."""
    for check in result.get_asset_check_evaluations():
        if not check.passed and check.blocking:
            first = check.metadata["first"].value if "first" in check.metadata else ""
            return f"check {check.check_name} of {check.asset_key.to_user_string()} failed: {first}"
    for event in result.all_events:
        if event.is_failure and event.event_specific_data is not None:
            error = getattr(event.event_specific_data, "error", None)
            failure = getattr(event.event_specific_data, "user_failure_data", None)
            if failure is not None and failure.description:
                return str(failure.description)
            if error is not None:
                return _OUR_ERROR.sub("", str((error.cause or error).message).strip())
    return "the run failed; see its events in the web UI"

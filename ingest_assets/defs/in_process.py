"""Run batches in this process, through Dagster: what commands do."""

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
from ingest_assets.defs.orphans import settle_orphans
from ingest_assets.defs.resources import HomeResource
from ingest_assets.settings.read import settings_to_json

_TAGS = {
    # A person is at this command: what they interrupt must not be started again by a daemon.
    "dagster/max_retries": "0",
    # By this the web UI counts the run to its job.
    ".dagster/repository": "__repository__@ingest_assets.definitions",
}
_OUR_ERROR = re.compile(r"^ingest_assets\.[\w.]+: ")


class InProcess:
    """Runs of one home; an `Executor` of the driver. The instance is open for as long as the `with` block.

    `with_settings` is for a home whose settings are not those of its file: steps get them too.
    `is_interrupted` says whether the command was asked to end, which Dagster forgets while it closes a run;
    each run is inside `during_run()`.
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
        self._open.enter_context(_environment_as_before(self._home))
        self._instance = self._open.enter_context(open_instance(self._home.layout, for_command=True))
        settle_orphans(self._instance)
        apply_pools(self._instance, self._home.settings.pools)
        self._definitions = build_definitions(self._resource, progress=self._progress, finishes=False)
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()

    def run(self, batch: str, stages: Sequence[str], options: Mapping[str, Any], reason: str) -> BatchResult:
        """One Dagster run of these stages."""
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
        broken = None if result.success else _why(result)
        had_company = broken is not None and _had_company(instance, batch, result.run_id)
        return BatchResult(numbers, errors, broken, had_company)

    def make_statistics(self) -> str | None:
        """One Dagster run for the whole corpus."""
        result = self._execute(LEXICAL_STATS_JOB, {}, tags=_TAGS)
        return None if result.success else _why(result)

    def _execute(self, job: str, ops: Mapping[str, Any], **arguments: Any) -> dg.ExecuteInProcessResult:
        """One run; an interrupt is a `KeyboardInterrupt`, whatever Dagster makes of it.

        Dagster's events go to the UI, not over this command's own output.
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
def _environment_as_before(home: Home) -> Iterator[None]:
    """Opening a Dagster instance says in the environment which home it is; afterwards it says what it did."""
    before = {name: os.environ.get(name) for name in environment(home.layout)}
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _had_company(instance: dg.DagsterInstance, batch: str, run_id: str) -> bool:
    """True when another run was at the batch at the same time."""
    of_batch = dg.RunsFilter(tags={PARTITION: batch})
    records = {record.dagster_run.run_id: record for record in instance.get_run_records(of_batch)}
    began_at = records.pop(run_id).start_time or 0.0
    others = [record for record in records.values() if record.start_time is not None]
    return any(other.end_time is None or other.end_time >= began_at for other in others)


def _stage_metadata(result: dg.ExecuteInProcessResult) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The numbers of each stage, by its step: of those that finished, and of those that were stopped."""
    for event in result.get_asset_materialization_events():
        yield str(event.step_key), event.step_materialization_data.materialization.metadata
    for event in result.all_events:
        failure = event.step_failure_data.user_failure_data if event.is_step_failure else None
        if failure is not None and "scheduled" in failure.metadata:
            yield str(event.step_key), failure.metadata


def _why(result: dg.ExecuteInProcessResult) -> str:
    """The reason a person can use: a failed blocking check, or the error under Dagster's wrapping."""
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
    return "the run failed; its events in the web UI say why"

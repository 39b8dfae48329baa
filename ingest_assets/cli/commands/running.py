"""`ingest all | doctags | chunk | embed | plan`."""

from collections.abc import Callable

import typer

from ingest_assets.cli.commands import flags
from ingest_assets.cli.commands.flags import libraries
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.items import STEPS, Step


def run_command(last: Step, help_text: str) -> Callable[..., None]:
    """A command that runs the graph up to a step; stages that are current cost nothing."""

    def command(
        home: flags.HomeFlag = None,
        input: flags.InputFlag = None,
        first: flags.FromFlag = STEPS[0],
        until: flags.UntilFlag = last,
        resume: flags.ResumeFlag = True,
        force: flags.ForceFlag = False,
        workers: flags.WorkersFlag = None,
        policy: flags.PolicyFlag = None,
        backend: flags.BackendFlag = None,
        run_on: flags.RunOnFlag = None,
        retries: flags.RetriesFlag = None,
        timeout_s: flags.TimeoutFlag = None,
        error_budget: flags.BudgetFlag = None,
        max_queue: flags.QueueFlag = None,
        experimental: flags.ExperimentalFlag = False,
        dry_run: flags.DryRunFlag = False,
        as_json: flags.JsonFlag = False,
    ) -> None:
        _require_order(first, until)
        config = {
            "workers": workers,
            "policy": policy,
            "backend": backend,
            "run_on": run_on,
            "retries": retries,
            "per_item_timeout_s": timeout_s,
            "error_budget": error_budget,
            "max_queue": max_queue,
            "resume": None if resume else False,
            "force": force or None,
        }
        given = {name: value for name, value in config.items() if value is not None}
        with libraries(home):
            from ingest_assets.app.graph import stages_between
            from ingest_assets.cli.ingest import ingest
            from ingest_assets.cli.planning import show_plan
        if dry_run:
            show_plan(home, input, stages_between(first, until), given, as_json)
        else:
            raise typer.Exit(ingest(home, input, stages_between(first, until), given, as_json))

    command.__doc__ = help_text
    return command


def plan(
    home: flags.HomeFlag = None,
    input: flags.InputFlag = None,
    first: flags.FromFlag = STEPS[0],
    until: flags.UntilFlag = STEPS[-1],
    as_json: flags.JsonFlag = False,
) -> None:
    """Say what a run would do and how long it would take, and touch nothing."""
    _require_order(first, until)
    with libraries(home):
        from ingest_assets.app.graph import stages_between
        from ingest_assets.cli.planning import show_plan
    show_plan(home, input, stages_between(first, until), {}, as_json)


def _require_order(first: Step, until: Step) -> None:
    if STEPS.index(first) > STEPS.index(until):
        raise ConfigError(f"--from {first} comes after --until {until}; swap them.")

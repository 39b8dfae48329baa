"""`ingest plan`: what a run would do, without doing it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingest_assets.cli import flags
from ingest_assets.cli.output import grid, print_json, say, warn
from ingest_assets.cli.summary import problem_line, scan_line, scan_object
from ingest_assets.defs.completeness import StageState, batch_states
from ingest_assets.defs.graph import STEPS, stages_between
from ingest_assets.defs.home import Home, open_home


def plan(
    home: flags.HomeFlag = None,
    input: flags.InputFlag = None,
    first: flags.FromFlag = STEPS[0],
    until: flags.UntilFlag = STEPS[-1],
    as_json: flags.JsonFlag = False,
) -> None:
    """Say what a run would do per batch and stage, and touch nothing."""
    show_plan(
        open_home(home, leaves_no_trace=True, must_exist=False), input, stages_between(first, until), as_json
    )


def show_plan(
    home: Home, folder: Path | None, stages: Sequence[str], as_json: bool, *, runs_all: bool = False
) -> None:
    """Print the plan for people or programs; `runs_all` when nothing would be skipped."""
    result = plan_object(home, folder, stages, runs_all=runs_all)
    if as_json:
        print_json(result)
        return
    found = result["scan"]
    say(scan_line(found))
    for problem in result["problems"]:
        warn(problem_line(problem))
    rows = [
        [s["batch"], s["stage"], s["run"], s["done"], s["failed"], s["removed"]] for s in result["stages"]
    ]
    if rows:
        grid("", ["batch", "stage", "to run", "done", "failed before", "to remove"], rows)
    if any(found[name] for name in ("new", "changed", "moved", "deleted", "restored")):
        say("Changes in the folders come on top of these figures once `ingest all` has taken them in.")


def plan_object(
    home: Home, folder: Path | None, stages: Sequence[str], *, runs_all: bool = False
) -> dict[str, Any]:
    """The plan as one object."""
    states = [state for batch in home.ledger.batches() for state in batch_states(home, batch, stages)]
    return {
        "home": str(home.layout.home),
        **scan_object(home.preview_scan(folder)),
        "stages": [_line(state, runs_all) for state in states],
    }


def _line(state: StageState, runs_all: bool) -> dict[str, Any]:
    again = state.done + len(state.failed) if runs_all else 0
    return {
        "batch": state.batch,
        "stage": state.stage,
        "run": len(state.run) + again,
        "done": 0 if runs_all else state.done,
        "failed": len(state.failed),
        "removed": state.removed,
    }

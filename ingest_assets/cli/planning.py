"""`ingest plan`: what a run would do, without doing it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingest_assets.cli import flags
from ingest_assets.cli.output import grid, print_json, say, warn
from ingest_assets.cli.runs import stages_between
from ingest_assets.defs.completeness import batch_states
from ingest_assets.defs.home import Home, open_home


def plan(
    home: flags.HomeFlag = None,
    input: flags.InputFlag = None,
    first: flags.FromFlag = "documents",
    until: flags.UntilFlag = "embeddings",
    as_json: flags.JsonFlag = False,
) -> None:
    """Say what a run would do per batch and stage, and touch nothing."""
    show_plan(open_home(home), input, stages_between(first, until), as_json)


def show_plan(home: Home, folder: Path | None, stages: Sequence[str], as_json: bool) -> None:
    """Print the plan for people or programs."""
    result = plan_object(home, folder, stages)
    if as_json:
        print_json(result)
        return
    found = result["scan"]
    say(
        f"Folders: {found['new']} new, {found['changed']} changed, {found['deleted']} deleted, "
        f"{found['restored']} back again, {found['unchanged']} unchanged files."
    )
    for problem in result["problems"]:
        warn(f"not taken in: {problem['source']}: {problem['path']}: {problem['reason']}.")
    rows = [
        [s["batch"], s["stage"], s["run"], s["done"], s["failed"], s["removed"]] for s in result["stages"]
    ]
    if rows:
        grid("", ["batch", "stage", "to run", "done", "failed before", "to remove"], rows)
    if found["new"] or found["changed"] or found["deleted"]:
        say(
            "New, changed and deleted files come on top of these figures once `ingest all` has taken them in."
        )


def plan_object(home: Home, folder: Path | None, stages: Sequence[str]) -> dict[str, Any]:
    """The plan as one object."""
    scan = home.preview_scan(folder)
    states = [state for batch in home.ledger.batches() for state in batch_states(home, batch, stages)]
    return {
        "home": str(home.layout.home),
        "scan": {
            name: getattr(scan, name) for name in ("new", "changed", "deleted", "restored", "unchanged")
        },
        "problems": [{"source": s, "path": p.path, "reason": p.reason} for s, p in scan.problems],
        "stages": [
            {
                "batch": state.batch,
                "stage": state.stage,
                "run": len(state.run),
                "done": state.done,
                "failed": len(state.failed),
                "removed": state.removed,
            }
            for state in states
        ],
    }

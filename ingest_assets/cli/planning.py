"""`ingest plan` and `--dry-run`: what a run would do, without doing it."""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingest_assets.cli.output import grid, print_json, say, warn
from ingest_assets.cli.plan_words import estimate_sentence, set_sentence, totals_sentence
from ingest_assets.cli.summary import problem_line, scan_line, scan_object
from ingest_assets.defs.estimates import Estimate, fetch_estimate, stage_estimate
from ingest_assets.defs.execution import refuse_early
from ingest_assets.defs.forecast import BatchForecast, forecast
from ingest_assets.defs.graph import GRAPH, STEPS
from ingest_assets.defs.home import Home, open_home
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.defs.sets import buildings
from ingest_assets.intake.inbox import Filter
from ingest_assets.intake.scan import ScanReport
from ingest_assets.model.errors import ConfigError

_BATCHES_SHOWN = 20


def take_in(home: Home, folder: Path | None, stages: Sequence[str], config: StageRunConfig) -> ScanReport:
    """What a run does before its first stage; what it would be refused for is refused before all else."""
    _ = home.stages  # settings that contradict each other
    refuse_early(home, stages, config)
    if folder is not None:
        home.watch(folder)
    if not home.sources() and not home.queue.find(Filter(), limit=1):
        raise ConfigError(
            f"No folder is watched by {home.layout.home} and nothing is queued; give a folder with --input "
            "or [sources] in ingest.toml, or a list with `ingest queue import`."
        )
    return home.scan()


def show_plan(
    path: Path | None, folder: Path | None, stages: Sequence[str], config: dict[str, Any], as_json: bool
) -> None:
    """Print the plan of a run with this configuration, for people or programs."""
    home = open_home(path, only_looks=True, must_exist=False)
    result = plan_object(home, folder, stages, StageRunConfig(**config))
    if as_json:
        print_json(result)
    else:
        _print(result)


def plan_object(
    home: Home, folder: Path | None, stages: Sequence[str], config: StageRunConfig
) -> dict[str, Any]:
    """The plan as one object. What a run does to the ledger first is really done, to the copy of it."""
    stages = [stage for stage in stages if stage in home.graph]
    known = home.ledger.batches()
    scan = take_in(home, folder, stages, config)
    now = time.time()
    found = [forecast(home, batch, stages, config, now) for batch in home.ledger.batches()]
    estimates = _estimates(home, stages, config, found)
    return {
        "home": str(home.layout.home),
        **scan_object(scan),
        "sets": _sets(home, found),
        "totals": _totals(stages, found),
        "estimate_seconds": _seconds(estimates),
        "estimate_unknown": {name: each.unknown for name, each in estimates.items() if each.unknown},
        "new_batches": [each.batch for each in found if each.batch not in known],
        "blocked_batches": {each.batch: each.blocked for each in found if each.blocked},
        "stages": [line for each in found for line in _lines(each)],
    }


def _sets(home: Home, found: Sequence[BatchForecast]) -> list[dict[str, Any]]:
    """Families whose settings ask for another set than the one that serves, and what is left to do for it."""
    run = Counter(stage.stage for batch in found for stage in batch.stages for _ in stage.run)
    return [each.as_object() | {"documents_to_embed": run[each.stage]} for each in buildings(home)]


def _totals(stages: Sequence[str], found: Sequence[BatchForecast]) -> dict[str, int]:
    """Documents: to fetch, to run in each step, and those for which nothing is done."""
    steps = [step for step in STEPS if any(GRAPH[stage].step == step for stage in stages)]
    return {
        "fetch": sum(len(each.fetch) for each in found),
        **{step: sum(_in_step(each, step) for each in found) for step in steps},
        "adopted": sum(len(stage.adopted) for each in found for stage in each.stages),
        "skipped": sum(each.done for each in found),
        "failed_before": sum(_failed_before(each) for each in found),
        "removed": sum(each.gone for each in found),
        "waiting": sum(each.waiting for each in found),
    }


def _in_step(batch: BatchForecast, step: str) -> int:
    return len({doc for each in batch.stages if GRAPH[each.stage].step == step for doc in each.run})


def _failed_before(batch: BatchForecast) -> int:
    return len({doc for stage in batch.stages for doc in stage.failed})


def _estimates(
    home: Home, stages: Sequence[str], config: StageRunConfig, found: Sequence[BatchForecast]
) -> dict[str, Estimate]:
    """Per stage; what takes its rows along takes no time worth counting."""
    todo: dict[str, list[list[str]]] = {stage: [] for stage in stages}
    for batch in found:
        for each in batch.stages:
            todo[each.stage].append([doc for doc in each.run if doc not in each.adopted])
    fetching = {"fetch": fetch_estimate(home, [batch.fetch for batch in found])}
    return fetching | {stage: stage_estimate(home, stage, some, config) for stage, some in todo.items()}


def _seconds(estimates: dict[str, Estimate]) -> dict[str, float | None]:
    known = [each.seconds for each in estimates.values() if each.seconds is not None]
    everything = sum(known) if len(known) == len(estimates) else None
    seconds = {name: each.seconds for name, each in estimates.items()} | {"all": everything}
    return {name: None if value is None else round(value, 2) for name, value in seconds.items()}


def _lines(batch: BatchForecast) -> list[dict[str, Any]]:
    return [
        {
            "batch": batch.batch,
            "stage": each.stage,
            "run": len(each.run),
            "done": each.done,
            "failed": len(each.failed),
            "removed": len(each.removed),
        }
        for each in batch.stages
    ]


def _print(result: dict[str, Any]) -> None:
    say(scan_line(result["scan"]))
    for problem in result["problems"]:
        warn(problem_line(problem))
    _print_batches(result)
    say(totals_sentence(result["totals"]))
    for each in result["sets"]:
        say(set_sentence(each))
    if sentence := estimate_sentence(result["estimate_seconds"], result["estimate_unknown"]):
        say(sentence)
    for batch, why in result["blocked_batches"].items():
        warn(f"batch {batch} would stop: {why}")


def _print_batches(result: dict[str, Any]) -> None:
    """Batches with something to do; a long list helps nobody."""
    busy = [line for line in result["stages"] if line["run"] or line["removed"]]
    shown = list(dict.fromkeys(line["batch"] for line in busy))
    names = {batch: f"{batch} (new)" if batch in result["new_batches"] else batch for batch in shown}
    columns = ["run", "done", "failed", "removed"]
    rows = [
        [names[line["batch"]], line["stage"], *(line[name] for name in columns)]
        for line in result["stages"]
        if line["batch"] in shown[:_BATCHES_SHOWN]
    ]
    if rows:
        grid("", ["batch", "stage", "to run", "done", "failed before", "to remove"], rows)
    if len(shown) > _BATCHES_SHOWN:
        say(f"… and {len(shown) - _BATCHES_SHOWN} more batches; --json lists all.")

"""`ingest plan` and `--dry-run`: what a run would do, without doing it."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ingest_assets.app.driver import ScanReport, refresh, require_documents, require_ready
from ingest_assets.app.execution import RunOptions
from ingest_assets.app.graph import GRAPH, STEPS, stages_between
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.model_switch import buildings
from ingest_assets.app.plan import BatchForecast, Estimate, fetch_estimate, forecast, stage_estimate
from ingest_assets.app.report import scan_object
from ingest_assets.cli.flags import FromFlag, HomeFlag, InputFlag, JsonFlag, UntilFlag
from ingest_assets.cli.output import grid, print_json, problem_line, say, scan_line, warn
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.items import Step

_BATCHES_SHOWN = 20  # each with a line a stage: six times as many lines
_VERBS = {
    "fetch": "fetch",
    "documents": "take in",
    "doctags": "convert",
    "admission": "judge",
    "chunks": "chunk",
    "embeddings": "embed",
}
# For one document, and for more.
_NOTES = {
    "skipped": ("is done and skipped", "are done and skipped"),
    "failed_before": ("failed before and is not tried again", "failed before and are not tried again"),
    "removed": ("leaves the tables", "leave the tables"),
    "waiting": ("waits for its time to be fetched", "wait for their time to be fetched"),
}


def plan(
    home: HomeFlag = None,
    input: InputFlag = None,
    first: FromFlag = STEPS[0],
    until: UntilFlag = STEPS[-1],
    as_json: JsonFlag = False,
) -> None:
    """Say what a run would do and how long it would take, and touch nothing."""
    show_plan(home, input, wanted_stages(first, until), {}, as_json)


def wanted_stages(first: Step, until: Step) -> list[str]:
    """The stages that --from and --until ask for."""
    if STEPS.index(first) > STEPS.index(until):
        raise ConfigError(f"--from {first} comes after --until {until}; swap them.")
    return stages_between(first, until)


def take_in(home: Home, folder: Path | None, stages: Sequence[str], config: RunOptions) -> ScanReport:
    """What a run does before its first stage; what it would be refused for is refused before all else."""
    require_ready(home, stages, config)
    if folder is not None:
        home.watch(folder)
    require_documents(home)
    return refresh(home)


def show_plan(
    path: Path | None, folder: Path | None, stages: Sequence[str], config: dict[str, Any], as_json: bool
) -> None:
    """Print the plan of a run with this configuration, for people or programs."""
    home = open_home(path, only_looks=True, must_exist=False)
    result = plan_object(home, folder, stages, RunOptions(**config))
    if as_json:
        print_json(result)
    else:
        _print(result)


def plan_object(home: Home, folder: Path | None, stages: Sequence[str], config: RunOptions) -> dict[str, Any]:
    """The plan as one object. What a run does to the ledger first is really done, to the copy of it."""
    stages = [stage for stage in stages if stage in home.graph]
    known = home.ledger.batches()
    scan = take_in(home, folder, stages, config)
    now = time.time()
    found = [forecast(home, batch, stages, config, now) for batch in home.ledger.batches()]
    estimates = _estimates(home, stages, config, found)
    run = Counter(stage.stage for batch in found for stage in batch.stages for _ in stage.run)
    return {
        "home": str(home.layout.home),
        **scan_object(scan),
        "sets": [each.as_object() | {"documents_to_embed": run[each.stage]} for each in buildings(home)],
        "totals": _totals(stages, found),
        "estimate_seconds": _seconds(estimates),
        "estimate_unknown": {name: each.unknown for name, each in estimates.items() if each.unknown},
        "new_batches": [each.batch for each in found if each.batch not in known],
        "blocked_batches": {each.batch: each.blocked for each in found if each.blocked},
        "stages": [
            {
                "batch": batch.batch,
                "stage": each.stage,
                "run": len(each.run),
                "done": len(each.done),
                "failed": len(each.failed),
                "removed": len(each.removed),
            }
            for batch in found
            for each in batch.stages
        ],
    }


def _totals(stages: Sequence[str], found: Sequence[BatchForecast]) -> dict[str, int]:
    """Documents: to fetch, to run in each step, and those for which nothing is done."""
    steps = [step for step in STEPS if any(GRAPH[stage].step == step for stage in stages)]
    return {
        "fetch": sum(len(each.fetch) for each in found),
        **{step: sum(_in_step(each, step) for each in found) for step in steps},
        "skipped": sum(each.done for each in found),
        "failed_before": sum(len({doc for stage in each.stages for doc in stage.failed}) for each in found),
        "removed": sum(each.gone for each in found),
        "waiting": sum(each.waiting for each in found),
    }


def _in_step(batch: BatchForecast, step: str) -> int:
    # A step may have several stages, such as the families of embeddings: a document counts once.
    return len({doc for each in batch.stages if GRAPH[each.stage].step == step for doc in each.run})


def _estimates(
    home: Home, stages: Sequence[str], config: RunOptions, found: Sequence[BatchForecast]
) -> dict[str, Estimate]:
    """Per stage."""
    todo: dict[str, list[list[str]]] = {stage: [] for stage in stages}
    for batch in found:
        for each in batch.stages:
            todo[each.stage].append(list(each.run))
    fetching = {"fetch": fetch_estimate(home, [batch.fetch for batch in found])}
    return fetching | {stage: stage_estimate(home, stage, some, config) for stage, some in todo.items()}


def _seconds(estimates: dict[str, Estimate]) -> dict[str, float | None]:
    known = [each.seconds for each in estimates.values() if each.seconds is not None]
    everything = sum(known) if len(known) == len(estimates) else None
    seconds = {name: each.seconds for name, each in estimates.items()} | {"all": everything}
    return {name: None if value is None else round(value, 2) for name, value in seconds.items()}


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


# A plan in two sentences, for a person.


def totals_sentence(totals: Mapping[str, int]) -> str:
    """What would be done to how many documents, and to how many nothing."""
    doing = [name for name in ("fetch", *STEPS) if totals.get(name)]
    would = "Nothing would be computed"
    if doing:
        verbs = ", ".join(f"{_VERBS[name]} {totals[name]}" for name in doing)
        would = f"Would {verbs} {'document' if totals[doing[-1]] == 1 else 'documents'}"
    notes = [f"{totals[name]} {words[totals[name] > 1]}" for name, words in _NOTES.items() if totals[name]]
    return f"{would}; {', '.join(notes)}." if notes else f"{would}."


def set_sentence(found: Mapping[str, Any]) -> str:
    """What a switch of a family to another model means."""
    new = found["building_model"] or f"set {found['building']}"
    old = found["serving_model"] or f"set {found['serving']}"
    count = found["documents_to_embed"]
    todo = f"{count} {'document' if count == 1 else 'documents'} to embed for {new}"
    until = "serves until all are done" if found["serving_has_rows"] else "has no rows, and gives way at once"
    return f"{found['family']}: {todo}; {old} {until}."


def estimate_sentence(seconds: Mapping[str, float | None], unknown: Mapping[str, str]) -> str:
    """How long that would take, as far as anybody can tell; nothing for nothing to do."""
    steps: dict[str, float] = {}
    for name, value in seconds.items():
        if name != "all" and value:
            steps[_step(name)] = steps.get(_step(name), 0.0) + value
    gaps = _gaps(unknown)
    if not steps:
        return f"Nobody can tell how long ({gaps})." if gaps else ""
    parts = ", ".join(f"{_VERBS[step]} {in_words(value)}" for step, value in steps.items())
    total = f"{'More than' if gaps else 'About'} {in_words(sum(steps.values()))} by past runs"
    return f"{total} ({parts}; {gaps})." if gaps else f"{total} ({parts})."


def _gaps(unknown: Mapping[str, str]) -> str:
    """Which steps are unknown, and why."""
    reasons: dict[str, dict[str, None]] = {}
    for name, reason in unknown.items():
        # A dictionary, as a set in order: the families of embeddings are one step.
        reasons.setdefault(reason, {})[_VERBS[_step(name)]] = None
    return "; ".join(f"{', '.join(verbs)} unknown: {reason}" for reason, verbs in reasons.items())


def in_words(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 1:
        return "a second"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 120 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds / 86_400:.0f} days"


def _step(name: str) -> str:
    return GRAPH[name].step if name in GRAPH else name

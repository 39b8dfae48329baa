"""`ingest plan` and `--dry-run`: show what a run would do."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ingest_assets.app.driver import ScanReport, refresh, require_documents, require_ready
from ingest_assets.app.execution import RunOptions
from ingest_assets.app.graph import GRAPH, STEPS, stages_between
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.model_switch import pending_switches
from ingest_assets.app.plan import BatchForecast, Estimate, Reason, fetch_estimate, forecast, stage_estimate
from ingest_assets.app.report import scan_object
from ingest_assets.cli.flags import FromFlag, HomeFlag, InputFlag, JsonFlag, UntilFlag
from ingest_assets.cli.output import grid, print_json, problem_line, say, scan_line, warn
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.items import Step

_BATCHES_SHOWN = 20  # with one line per stage, that is over a hundred lines
_VERBS = {
    "fetch": "fetch",
    "documents": "register",
    "doctags": "convert",
    "admission": "check",
    "chunks": "chunk",
    "embeddings": "embed",
}
_REASONS = {
    "new": "new",
    "fetch": "to fetch",
    "changed": "changed",
    "settings": "with other settings or versions",
    "retry": "failed before",
    "forced": "forced",
}
# Singular and plural.
_NOTES = {
    "skipped": ("is done and skipped", "are done and skipped"),
    "failed_before": ("failed before and is not retried", "failed before and are not retried"),
    "removed": ("is removed from the tables", "are removed from the tables"),
    "waiting": ("is not due for fetching yet", "are not due for fetching yet"),
}


def plan(
    home_path: HomeFlag = None,
    input: InputFlag = None,
    first: FromFlag = STEPS[0],
    until: UntilFlag = STEPS[-1],
    as_json: JsonFlag = False,
) -> None:
    """Show what a run would do and how long it would take. Changes nothing."""
    show_plan(home_path, input, selected_stages(first, until), {}, as_json)


def selected_stages(first: Step, until: Step) -> list[str]:
    """Return the stages from `--from` to `--until`."""
    if STEPS.index(first) > STEPS.index(until):
        raise ConfigError(
            f"--from {first} comes after --until {until}; choose an earlier --from or a later --until."
        )
    return stages_between(first, until)


def prepare_run(home: Home, folder: Path | None, stages: Sequence[str], config: RunOptions) -> ScanReport:
    """Check the settings, watch the folder and scan: what a run does before its first stage."""
    require_ready(home, stages, config)
    if folder is not None:
        home.watch(folder)
    require_documents(home)
    return refresh(home)


def show_plan(
    path: Path | None, folder: Path | None, stages: Sequence[str], config: dict[str, Any], as_json: bool
) -> None:
    """Print the plan of a run with this configuration, as text or JSON."""
    home = open_home(path, read_only=True, must_exist=False)
    result = plan_object(home, folder, stages, RunOptions(**config))
    if as_json:
        print_json(result)
    else:
        _print(result)


def plan_object(home: Home, folder: Path | None, stages: Sequence[str], config: RunOptions) -> dict[str, Any]:
    """Return the plan as a JSON object. The home is read-only, so the scan updates a copy of the ledger."""
    stages = [stage for stage in stages if stage in home.graph]
    known = home.ledger.batches()
    scan = prepare_run(home, folder, stages, config)
    now = time.time()
    batches = [forecast(home, batch, stages, config, now) for batch in home.ledger.batches()]
    estimates, switches = _estimates(home, stages, config, batches), pending_switches(home)
    run = Counter(stage.stage for batch in batches for stage in batch.stages for _ in stage.run)
    return {
        "home": str(home.layout.home),
        **scan_object(scan),
        "sets": [switch.as_object() | {"documents_to_embed": run[switch.stage]} for switch in switches],
        "totals": _totals(stages, batches),
        "estimate_seconds": _seconds(estimates),
        "estimate_unknown": {name: value.unknown for name, value in estimates.items() if value.unknown},
        "reasons": _reasons(batches),
        "new_batches": [batch.batch for batch in batches if batch.batch not in known],
        "blocked_batches": {batch.batch: batch.blocked for batch in batches if batch.blocked},
        "stages": [
            {
                "batch": batch.batch,
                "stage": stage.stage,
                "run": len(stage.run),
                "done": len(stage.done),
                "failed": len(stage.failed),
                "removed": len(stage.removed),
            }
            for batch in batches
            for stage in batch.stages
        ],
    }


def _totals(stages: Sequence[str], batches: Sequence[BatchForecast]) -> dict[str, int]:
    """Count the documents to fetch, to run in each step, and those that need nothing."""
    steps = [step for step in STEPS if any(GRAPH[stage].step == step for stage in stages)]
    return {
        "fetch": sum(len(batch.fetch) for batch in batches),
        **{step: sum(_in_step(batch, step) for batch in batches) for step in steps},
        "skipped": sum(batch.done for batch in batches),
        "failed_before": sum(len({doc for stage in b.stages for doc in stage.failed}) for b in batches),
        "removed": sum(batch.gone for batch in batches),
        "waiting": sum(batch.waiting for batch in batches),
    }


def _reasons(batches: Sequence[BatchForecast]) -> list[dict[str, Any]]:
    """Count the documents to run by reason and by the first stage that runs them."""
    counts: Counter[tuple[str, Reason]] = Counter()
    for batch in batches:
        first: dict[str, tuple[str, Reason]] = {}
        for state in batch.stages:
            for doc_id, reason in state.run.items():
                first.setdefault(doc_id, (state.stage, reason))
        counts.update(first.values())
    return [{"reason": why, "from": stage, "documents": n} for (stage, why), n in counts.most_common()]


def _in_step(batch: BatchForecast, step: str) -> int:
    # A step can have several stages, such as the families of embeddings: a document counts once.
    return len({doc for stage in batch.stages if GRAPH[stage.stage].step == step for doc in stage.run})


def _estimates(
    home: Home, stages: Sequence[str], config: RunOptions, batches: Sequence[BatchForecast]
) -> dict[str, Estimate]:
    """Estimate the time of fetching and of each stage."""
    todo: dict[str, list[list[str]]] = {stage: [] for stage in stages}
    for batch in batches:
        for stage in batch.stages:
            todo[stage.stage].append(list(stage.run))
    fetching = {"fetch": fetch_estimate(home, [batch.fetch for batch in batches])}
    return fetching | {stage: stage_estimate(home, stage, docs, config) for stage, docs in todo.items()}


def _seconds(estimates: dict[str, Estimate]) -> dict[str, float | None]:
    known = [estimate.seconds for estimate in estimates.values() if estimate.seconds is not None]
    total = sum(known) if len(known) == len(estimates) else None
    seconds = {name: estimate.seconds for name, estimate in estimates.items()} | {"all": total}
    return {name: None if value is None else round(value, 2) for name, value in seconds.items()}


def _print(result: dict[str, Any]) -> None:
    say(scan_line(result["scan"]))
    for problem in result["problems"]:
        warn(problem_line(problem))
    _print_batches(result)
    say(totals_sentence(result["totals"]))
    if result["reasons"]:
        say(reasons_sentence(result["reasons"]))
    for switch in result["sets"]:
        say(set_sentence(switch))
    if sentence := estimate_sentence(result["estimate_seconds"], result["estimate_unknown"]):
        say(sentence)
    for batch, reason in result["blocked_batches"].items():
        warn(f"batch {batch} would stop: {reason}")


def _print_batches(result: dict[str, Any]) -> None:
    """Print the first batches that have something to do."""
    lines = [line for line in result["stages"] if line["run"] or line["removed"]]
    due = list(dict.fromkeys(line["batch"] for line in lines))
    names = {batch: f"{batch} (new)" if batch in result["new_batches"] else batch for batch in due}
    columns = ["run", "done", "failed", "removed"]
    rows = [
        [names[line["batch"]], line["stage"], *(line[name] for name in columns)]
        for line in result["stages"]
        if line["batch"] in due[:_BATCHES_SHOWN] and any(line[name] for name in columns)
    ]
    if rows:
        grid("", ["batch", "stage", "to run", "done", "failed before", "to remove"], rows)
    if len(due) > _BATCHES_SHOWN:
        say(f"… and {len(due) - _BATCHES_SHOWN} more batches; --json lists all.")


# The plan in sentences.


def totals_sentence(totals: Mapping[str, int]) -> str:
    """Return how many documents would be processed, and how many not and why."""
    steps = [name for name in ("fetch", *STEPS) if totals.get(name)]
    would = "Nothing would be computed"
    if steps:
        verbs = ", ".join(f"{_VERBS[name]} {totals[name]}" for name in steps)
        would = f"Would {verbs} {'document' if totals[steps[-1]] == 1 else 'documents'}"
    notes = [f"{totals[name]} {words[totals[name] > 1]}" for name, words in _NOTES.items() if totals[name]]
    return f"{would}; {', '.join(notes)}." if notes else f"{would}."


def reasons_sentence(reasons: Sequence[Mapping[str, Any]]) -> str:
    """Return why documents run, and from which stage on if that is not the first."""
    parts = []
    for line in reasons:
        place = "" if line["from"] == STEPS[0] else f" (from {line['from']} on)"
        parts.append(f"{line['documents']} {_REASONS[line['reason']]}{place}")
    return f"Why: {', '.join(parts)}."


def set_sentence(switch: Mapping[str, Any]) -> str:
    """Return what remains to be embedded for a family's new model, and how long the old one stays active."""
    new = switch["building_model"] or f"model set {switch['building']}"
    old = switch["serving_model"] or f"model set {switch['serving']}"
    count = switch["documents_to_embed"]
    todo = f"{count} {'document' if count == 1 else 'documents'} to embed for {new}"
    until = "stays active until then" if switch["serving_has_rows"] else "has no rows and is replaced at once"
    return f"{switch['family']}: {todo}; {old} {until}."


def estimate_sentence(seconds: Mapping[str, float | None], unknown: Mapping[str, str]) -> str:
    """Return how long a run would take, as far as known; an empty string if there is nothing to do."""
    steps: dict[str, float] = {}
    for name, value in seconds.items():
        if name != "all" and value:
            steps[_step(name)] = steps.get(_step(name), 0.0) + value
    gaps = _gaps(unknown)
    if not steps:
        return f"No estimate yet ({gaps})." if gaps else ""
    parts = ", ".join(f"{_VERBS[step]} {in_words(value)}" for step, value in steps.items())
    total = f"{'More than' if gaps else 'About'} {in_words(sum(steps.values()))}, judging by past runs"
    return f"{total} ({parts}; {gaps})." if gaps else f"{total} ({parts})."


def _gaps(unknown: Mapping[str, str]) -> str:
    """Return the steps without an estimate, grouped by reason."""
    reasons: dict[str, dict[str, None]] = {}
    for name, reason in unknown.items():
        # The keys are an ordered set: the families of embeddings are one step.
        reasons.setdefault(reason, {})[_VERBS[_step(name)]] = None
    return "; ".join(f"{', '.join(verbs)} unknown: {reason}" for reason, verbs in reasons.items())


def in_words(seconds: float) -> str:
    """Return a duration in a suitable unit."""
    if seconds < 1:
        return "a second"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 120 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds / 86_400:.0f} days"


def _step(name: str) -> str:
    return GRAPH[name].step if name in GRAPH else name

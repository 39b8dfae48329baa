"""A plan in two sentences, for a person."""

from collections.abc import Mapping
from typing import Any

from ingest_assets.defs.graph import GRAPH, STEPS

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
    "adopted": ("only moved and is not converted again", "only moved and are not converted again"),
    "skipped": ("is done and skipped", "are done and skipped"),
    "failed_before": ("failed before and is not tried again", "failed before and are not tried again"),
    "removed": ("leaves the tables", "leave the tables"),
    "waiting": ("waits for its time to be fetched", "wait for their time to be fetched"),
}


def totals_sentence(totals: Mapping[str, int]) -> str:
    """What would be done to how many documents, and to how many nothing."""
    doing = [name for name in ("fetch", *STEPS) if totals.get(name)]
    would = "Nothing would be computed"
    if doing:
        verbs = ", ".join(f"{_verb(name)} {totals[name]}" for name in doing)
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
    parts = ", ".join(f"{_verb(step)} {in_words(value)}" for step, value in steps.items())
    total = f"{'More than' if gaps else 'About'} {in_words(sum(steps.values()))} by past runs"
    return f"{total} ({parts}; {gaps})." if gaps else f"{total} ({parts})."


def _gaps(unknown: Mapping[str, str]) -> str:
    """Which steps are unknown, and why."""
    reasons: dict[str, list[str]] = {}
    for name, reason in unknown.items():
        verbs = reasons.setdefault(reason, [])
        verbs += [verb for verb in [_verb(_step(name))] if verb not in verbs]
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


def _verb(step: str) -> str:
    return _VERBS.get(step, step)

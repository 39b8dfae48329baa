"""What a run would do to a batch, by the ledger, the tables and the fingerprints alone.

As if all that is tried goes well: whether a document can be read, and whether what is fetched is new, nobody
knows before. Give it a home that only looks; what a run does to the ledger is done to the copy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ingest_assets.defs.completeness import StageState, batch_states
from ingest_assets.defs.foretelling import (
    admitted_to_come,
    facts_to_come,
    is_admitted,
    languages_known,
    termed_to_come,
)
from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.home import Home
from ingest_assets.defs.known import is_due
from ingest_assets.defs.resources.acquirer import line_up
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.intake.acquire import PATIENCE_S
from ingest_assets.intake.artifacts import Artifact
from ingest_assets.intake.claims import Claims, Standing
from ingest_assets.intake.inbox import Filter
from ingest_assets.model.errors import TableMissing
from ingest_assets.model.items import WorkItem, is_current
from ingest_assets.runner.verdicts import verdict_of
from ingest_assets.stages.admission import AdmissionStage, facts_of
from ingest_assets.stages.expected import acquired
from ingest_assets.stages.stage import ADOPTS, Candidate, work_items
from ingest_assets.storage.footer import Footer, read_footer
from ingest_assets.storage.parts import Parts
from ingest_assets.storage.tables import existing_table

# Who knows what is still to be made above by more than its fingerprint. A wrong answer costs no row.
_EXPECTS = {"doctags": acquired}


@dataclass(frozen=True, slots=True)
class StageForecast:
    """What a stage would do for one batch: `adopted` are among `run`, and only take their rows along."""

    stage: str
    run: tuple[str, ...] = ()
    adopted: frozenset[str] = frozenset()
    done: int = 0
    failed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchForecast:
    """What a run would do for one batch: `waiting` artifacts are for later, `blocked` says why it would stop.

    `done` documents have nothing left to do in any of the stages; `gone` ones leave the tables.
    """

    batch: str
    stages: tuple[StageForecast, ...]
    fetch: tuple[Artifact, ...] = ()
    waiting: int = 0
    done: int = 0
    gone: int = 0
    blocked: str = ""


@dataclass(frozen=True, slots=True)
class _Made:
    """What a stage's table will hold: rows that are there, and items that are not, or not yet."""

    there: frozenset[str]
    fresh: dict[str, WorkItem]


def forecast(
    home: Home, batch: str, stages: Sequence[str], config: StageRunConfig, now: float
) -> BatchForecast:
    """What a run of these stages would do now; a batch that is complete is not run, unless all are."""
    states = batch_states(home, batch, stages, due_at=now)
    runs_all = bool(config.force) or config.resume is False
    if not runs_all and all(state.is_complete() for state in states):
        return _complete(batch, states, len(home.awaited(batch)) if "documents" in stages else 0)
    fetch, waiting = _to_fetch(home, batch, now) if "documents" in stages else ((), 0)
    new = [artifact.artifact_id for artifact in fetch if artifact.content_hash is None]
    found, blocked = _Run(home, batch, config, new).through(stages)
    return BatchForecast(batch, found, fetch, waiting, _done(found), _gone(home, batch, found), blocked)


def _complete(batch: str, states: Sequence[StageState], waiting: int) -> BatchForecast:
    stages = tuple(StageForecast(s.stage, done=s.done, failed=s.failed) for s in states)
    return BatchForecast(batch, stages, waiting=waiting, done=_done(stages))


def _done(stages: Sequence[StageForecast]) -> int:
    """Of those that the first stage need not do, all but those that a later one has to, or could not do."""
    if not stages:
        return 0
    first, *below = stages
    elsewhere = {*first.run, *first.failed}
    return first.done - len({doc for stage in below for doc in (*stage.run, *stage.failed)} - elsewhere)


def _gone(home: Home, batch: str, stages: Sequence[StageForecast]) -> int:
    """What only moved leaves under its old id, which the ledger does not know any more."""
    removed = {doc for stage in stages for doc in stage.removed}
    if not removed:
        return 0
    return len(removed & {each.doc_id for each in home.ledger.documents(batch=batch) if each.is_deleted()})


def _to_fetch(home: Home, batch: str, now: float) -> tuple[tuple[Artifact, ...], int]:
    """What can be taken by then, and how many others have to wait or are held by another worker."""
    line_up(home, batch)
    found = home.queue.find(Filter(batch=batch))
    waiting = [artifact for artifact in found if artifact.state in ("queued", "in_progress")]
    due = tuple(artifact for artifact in waiting if is_due(artifact, now + PATIENCE_S))
    return due, len(waiting) - len(due)


class _Run:
    """One batch on its way through the stages. `new` documents come with what is fetched first."""

    def __init__(self, home: Home, batch: str, config: StageRunConfig, new: Sequence[str]) -> None:
        self._home, self._batch, self._config, self._new = home, batch, config, new
        self._made: dict[str, _Made] = {}
        self._admitted: dict[str, bool] = {}

    def through(self, stages: Sequence[str]) -> tuple[tuple[StageForecast, ...], str]:
        """What each stage would do, and what would stop the run."""
        found: list[StageForecast] = []
        for stage in (each for each in self._home.graph if each in stages):
            try:
                candidates = list(self._candidates(stage))
            except TableMissing as missing:
                return tuple(found), str(missing)
            stored = self._stored(stage)
            items = self._items(stage, candidates, stored)
            found.append(self._forecast(stage, items, stored))
            self._made[stage] = _made(items, stored)
            if GRAPH[stage].weighs:
                self._weigh(stage, items)
        return tuple(found), ""

    def _candidates(self, stage: str) -> Iterator[Candidate]:
        """What the stage will find: rows that stay, and what the stages above will have made by then."""
        node = GRAPH[stage]
        if not node.reads:
            known = list(self._home.candidates(stage, self._batch))
            there = {candidate.item_id for candidate in known}
            yield from known
            yield from (Candidate(doc, upstream="") for doc in self._new if doc not in there)
            return
        above = [self._made[name] for name in node.reads if name in self._made]
        for candidate in self._stored_candidates(stage):
            if all(candidate.item_id in each.there for each in above):
                yield candidate
        fresh = dict.fromkeys(doc for each in above for doc in each.fresh if self._admitted.get(doc, True))
        yield from (Candidate(doc, upstream="") for doc in fresh if doc in self._new)
        yield from self._expected(stage, [doc for doc in fresh if doc not in self._new])

    def _expected(self, stage: str, docs: Sequence[str]) -> Iterator[Candidate]:
        """What documents will be to the stage: of the tables that it reads, the first one decides."""
        first = GRAPH[stage].reads[0]
        if stage in _EXPECTS:
            found = (_EXPECTS[stage](self._made[first].fresh[doc]) for doc in docs)
            return (candidate for candidate in found if candidate is not None)
        marks = {doc: mark for doc in docs if (mark := self._mark(first, doc)) is not None}
        if GRAPH[stage].weighs:
            return (self._weighed(stage, doc, mark) for doc, mark in marks.items())
        if stage == "lexical" and marks:
            return termed_to_come(self._home.stages[stage], marks, languages_known(self._home, self._batch))
        return (Candidate(doc, mark) for doc, mark in marks.items())

    def _weigh(self, stage: str, items: Sequence[WorkItem]) -> None:
        """Who is admitted, and who is decided again, though not judged, because others stand differently."""
        before, made = self._standing, self._made[stage]
        above = self._made.get(GRAPH[stage].reads[0])
        unchanged = above.there if above is not None else made.there | set(made.fresh)
        recipe = self._home.stages[stage]
        self._admitted = admitted_to_come(self._home, self._batch, recipe, items, unchanged)
        turned = {d for d in made.there if is_admitted(before.get(d)) != self._admitted[d]}
        again = {item.item_id: item for item in items if item.item_id in turned}
        self._made[stage] = _Made(made.there - turned, made.fresh | again)

    def _mark(self, stage: str, doc: str) -> str | None:
        """The fingerprint that a document's rows will have; none when it will have no rows."""
        made, stored = self._made.get(stage), self._stored(stage)
        if made is not None and doc in made.fresh:
            return made.fresh[doc].fingerprint
        is_there = made is None or doc in made.there
        held = stored.items.get(doc) if stored is not None and is_there else None
        return None if held is None else held.fingerprint

    def _weighed(self, stage: str, doc: str, mark: str) -> Candidate:
        recipe, known = self._home.stages[stage], self._facts.get(doc)
        if known is None or not isinstance(recipe, AdmissionStage):
            return Candidate(doc, upstream="")
        return recipe.candidate(doc, mark, known, self._standing.get(doc))

    @cached_property
    def _facts(self) -> dict[str, dict[str, Any]]:
        documents = existing_table(self._home.layout, "documents", [self._batch], allow_missing=True)
        stored = facts_of(documents) if documents.paths else {}
        made = self._made.get("documents")
        return stored | (facts_to_come(made.fresh) if made is not None else {})

    @cached_property
    def _standing(self) -> dict[str, Standing]:
        return Claims(self._home.ledger).of(self._batch)

    def _stored_candidates(self, stage: str) -> Iterator[Candidate]:
        """From the tables as they are; one that this run will make may be missing."""
        missing = [name for name in GRAPH[stage].reads if self._stored(name) is None]
        if missing and all(name in self._made for name in missing):
            return iter(())
        return self._home.candidates(stage, self._batch)

    def _stored(self, stage: str) -> Footer | None:
        return read_footer(self._home.layout.table(self._home.asset(stage), self._batch))

    def _items(self, stage: str, candidates: Sequence[Candidate], stored: Footer | None) -> list[WorkItem]:
        recipe, layout = self._home.stages[stage], self._home.layout
        staged = Parts(layout, recipe.spec, self._batch).records()
        return list(work_items(recipe, candidates, layout, self._batch, stored, staged))

    def _forecast(self, stage: str, items: Sequence[WorkItem], stored: Footer | None) -> StageForecast:
        options = self._config.over(self._home.options(stage))
        verdicts = [(item, verdict_of(item, options)) for item in items]
        run = [item for item, verdict in verdicts if verdict == "run"]
        anew = options.force or not options.resume
        kept = {*stored.items, *stored.failures} if stored else set()
        return StageForecast(
            stage=stage,
            run=tuple(item.item_id for item in run),
            adopted=frozenset(item.item_id for item in run if ADOPTS in item.meta and not anew),
            done=sum(verdict == "skip" for _, verdict in verdicts),
            failed=tuple(item.item_id for item, verdict in verdicts if verdict == "known_failure"),
            removed=tuple(sorted(kept - {item.item_id for item in items})),
        )


def _made(items: Sequence[WorkItem], stored: Footer | None) -> _Made:
    """What failed for its own bytes' sake fails again, and nothing comes of it below."""
    held = stored.items if stored else {}
    there = frozenset(item.item_id for item in items if is_current(held.get(item.item_id), item.fingerprint))
    others = (item for item in items if item.item_id not in there and not item.is_known_to_fail())
    return _Made(there, {item.item_id: item for item in others})

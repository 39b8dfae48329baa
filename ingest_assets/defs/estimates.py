"""How long a run will take, by what the documents of past runs took.

Only the documents' own time counts: what workers need to start and load is not in it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from statistics import fmean

from ingest_assets.defs.execution import workers_in_sight
from ingest_assets.defs.home import Home
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.intake.artifacts import Artifact
from ingest_assets.intake.measures import Measures
from ingest_assets.runner import read_newest

_ROWS = 500
_ROWS_LOOKED_AT = 5_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds, or why nobody can tell."""

    seconds: float | None
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Past:
    """Seconds that one document took in a stage: by the ending of its name, and over all."""

    by_ending: dict[str, float]
    overall: float

    def seconds(self, ids: Iterable[str]) -> float:
        """What these documents will take, one after the other."""
        return sum(self.by_ending.get(_ending(doc_id), self.overall) for doc_id in ids)


def past_of(home: Home, stage: str) -> Past | None:
    """The last documents that a stage has done; None when there is none."""
    rows = islice(read_newest(home.layout.manifest(stage)), _ROWS_LOOKED_AT)
    done = (row for row in rows if row.status == "done" and "exec_s" in row.timings)
    taken: dict[str, list[float]] = defaultdict(list)
    for row in islice(done, _ROWS):
        taken[_ending(row.item_id)].append(float(row.timings["exec_s"]))
    if not taken:
        return None
    everything = [seconds for some in taken.values() for seconds in some]
    return Past({ending: fmean(some) for ending, some in taken.items()}, fmean(everything))


def stage_estimate(
    home: Home, stage: str, batches: Sequence[Sequence[str]], config: StageRunConfig
) -> Estimate:
    """For the documents of each batch; batches run one after the other."""
    todo = [batch for batch in batches if batch]
    if not todo:
        return Estimate(0.0)
    past, workers = past_of(home, stage), workers_in_sight(home, stage, config)
    if past is None:
        return Estimate(None, "never done here yet")
    if workers is None:
        return Estimate(None, "only the cluster knows its number of workers")
    return Estimate(sum(past.seconds(batch) / min(workers, len(batch)) for batch in todo))


def fetch_estimate(home: Home, batches: Sequence[Sequence[Artifact]]) -> Estimate:
    """For the artifacts of each batch: as many at a time as the queue allows, and as the hosts do."""
    todo = [batch for batch in batches if batch]
    if not todo:
        return Estimate(0.0)
    totals = Measures(home.ledger.database).totals()
    if not totals.fetches:
        return Estimate(None, "nothing was fetched yet")
    mean_s = totals.fetch_seconds / totals.fetches
    return Estimate(sum(_fetch_seconds(home, batch, mean_s) for batch in todo))


def _fetch_seconds(home: Home, batch: Sequence[Artifact], mean_s: float) -> float:
    queue, delay_s = home.settings.queue, home.settings.fetch.politeness_delay_s
    hosts = Counter(artifact.host for artifact in batch if artifact.host)
    bounds = [max((n - 1) * delay_s, n * mean_s / min(n, queue.max_per_host)) for n in hosts.values()]
    return max([len(batch) * mean_s / min(len(batch), queue.max_workers), *bounds])


def _ending(doc_id: str) -> str:
    return PurePosixPath(doc_id).suffix.lower()

"""The numbers of a running stage, in memory that does not grow with the plan."""

import random
from collections.abc import Mapping

from ingest_assets.model.errors import StageError
from ingest_assets.model.items import Result
from ingest_assets.model.outcomes import Percentiles, StageOutcome

RESERVOIR_SIZE = 1024
MAX_WARNINGS = 100


class Reservoir:
    """A fair sample of a stream: exact up to its size, then within about a percent."""

    def __init__(self, rng: random.Random, size: int = RESERVOIR_SIZE) -> None:
        self._rng, self._size, self._seen = rng, size, 0
        self._sample: list[float] = []

    def add(self, value: float) -> None:
        """Keep each value seen so far with equal chance."""
        self._seen += 1
        if len(self._sample) < self._size:
            self._sample.append(value)
        elif (place := self._rng.randrange(self._seen)) < self._size:
            self._sample[place] = value

    def percentiles(self) -> Percentiles:
        """By nearest rank; zeros when nothing was added."""
        if not self._sample:
            return Percentiles()
        ordered = sorted(self._sample)
        p50, p95, p99 = (ordered[int(share * len(ordered))] for share in (0.5, 0.95, 0.99))
        return Percentiles(p50=p50, p95=p95, p99=p99)


class Tally:
    """Counts as they happen. What was scheduled and neither succeeded nor failed is cancelled."""

    def __init__(self, rng: random.Random) -> None:
        self.scheduled = self.skipped = self.known_failures = 0
        self.succeeded = self.failed = self.retries = self.rows = 0
        self.cpu_s = 0.0
        self.cancelled_reason: str | None = None
        self._counts: dict[str, int] = {}
        self._errors: list[tuple[int, StageError]] = []
        self._warnings: list[str] = []
        self._more_warnings = 0
        self.queue_s, self.exec_s = Reservoir(rng), Reservoir(rng)

    @property
    def done(self) -> int:
        """Items nobody has to think of any more."""
        return self.succeeded + self.skipped + self.failed

    def count(self, counts: Mapping[str, int]) -> None:
        """Add the counters of one attempt, whatever it came to."""
        for name, number in counts.items():
            self._counts[name] = self._counts.get(name, 0) + number

    def succeed(self, result: Result) -> None:
        """Add one item's rows."""
        self.succeeded += 1
        self.rows += result.rows

    def fail(self, plan_order: int, error: StageError) -> None:
        """Keep the item's last error."""
        self.failed += 1
        self._errors.append((plan_order, error))

    def warn(self, text: str) -> None:
        """Keep the first hundred and the number of the others."""
        if len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(text)
        else:
            self._more_warnings += 1

    def outcome(
        self, *, stage: str, policy: str, workers: int, workers_reason: str, wall_s: float
    ) -> StageOutcome:
        """The numbers so far, frozen."""
        more = [f"and {self._more_warnings} more warnings"] if self._more_warnings else []
        return StageOutcome(
            stage=stage,
            policy=policy,
            workers=workers,
            workers_reason=workers_reason,
            scheduled=self.scheduled,
            skipped=self.skipped,
            known_failures=self.known_failures,
            succeeded=self.succeeded,
            failed=self.failed,
            cancelled=self.scheduled - self.succeeded - self.failed,
            cancelled_reason=self.cancelled_reason,
            rows=self.rows,
            counts=dict(sorted(self._counts.items())),
            retries=self.retries,
            wall_s=wall_s,
            cpu_s=self.cpu_s,
            items_per_s=(self.succeeded + self.failed) / wall_s if wall_s > 0 else 0.0,
            queue_s=self.queue_s.percentiles(),
            exec_s=self.exec_s.percentiles(),
            errors=tuple(error for _, error in sorted(self._errors, key=lambda each: each[0])),
            warnings=(*self._warnings, *more),
        )

"""Which artifacts are leased next: first come, first served, within the limits per host and resolver.

A lane is one resolver and one host. The head of the queue is read first. If it yields too few artifacts
because their lanes are full, the head of every lane is read instead, by one index seek per lane. So neither
ten thousand artifacts of a host at its limit nor ten thousand hosts block the others.
"""

import heapq
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from ingest_assets.intake.schema import artifacts
from ingest_assets.settings.intake import QueueOptions

# Literals, because a partial index is used only if the planner sees its value.
QUEUED = artifacts.c.state == sa.literal_column("'queued'")
IN_PROGRESS = artifacts.c.state == sa.literal_column("'in_progress'")


@dataclass(frozen=True, slots=True, order=True)
class Waiting:
    """A queued artifact, ordered by its place in the queue."""

    not_before: float
    seq: int
    resolver: str = field(compare=False)
    host: str = field(compare=False)


_COLUMNS = [artifacts.c[name] for name in Waiting.__dataclass_fields__]


class FreeLeases:
    """How many more leases each host and resolver can have."""

    def __init__(self, options: QueueOptions, hosts: Counter[str], resolvers: Counter[str]) -> None:
        self._options = options
        self._hosts = hosts
        self._resolvers = resolvers

    @classmethod
    def now(cls, connection: sa.Connection, options: QueueOptions) -> "FreeLeases":
        """Count the current leases; call it in the transaction that adds to them."""
        lane = (artifacts.c.host, artifacts.c.resolver)
        rows = connection.execute(sa.select(*lane, sa.func.count()).where(IN_PROGRESS).group_by(*lane)).all()
        hosts, resolvers = Counter[str](), Counter[str]()
        for host, resolver, count in rows:
            hosts[host] += count
            resolvers[resolver] += count
        return cls(options, hosts, resolvers)

    def left(self, waiting: Waiting, limit: int) -> int:
        """Return how many leases this lane can have, at most `limit`. Files have no limit per host."""
        if waiting.host:
            limit = min(limit, self._options.max_per_host - self._hosts[waiting.host])
        cap = self._options.max_per_resolver.get(waiting.resolver)
        if cap is not None:
            limit = min(limit, cap - self._resolvers[waiting.resolver])
        return max(0, limit)

    def take(self, waiting: Waiting) -> bool:
        """Count one more lease; False if the limit is reached."""
        if not self.left(waiting, 1):
            return False
        self._hosts[waiting.host] += 1
        self._resolvers[waiting.resolver] += 1
        return True

    def copy(self) -> "FreeLeases":
        """Return an independent copy."""
        return FreeLeases(self._options, Counter(self._hosts), Counter(self._resolvers))


def choose(
    connection: sa.Connection,
    free: FreeLeases,
    limit: int,
    now: float,
    batch: str | None = None,
    min_head: int = 200,
) -> list[int]:
    """Return the numbers of the artifacts to lease, in queue order. Reads at least `min_head` of the queue
    before it reads the lanes."""
    if batch is not None:  # a batch is small
        return _first_come(_read(connection, _due(now).where(artifacts.c.batch == batch)), free, limit)
    head_size = max(min_head, 2 * limit)
    head = _read(connection, _due(now).limit(head_size))
    chosen = _first_come(head, free.copy(), limit)
    if len(chosen) == limit or len(head) < head_size:
        return chosen
    return _from_lanes(connection, free, limit, now)


def _due(now: float) -> sa.Select:
    """Select all artifacts that can be leased now, in queue order."""
    query = sa.select(*_COLUMNS).where(QUEUED, artifacts.c.not_before <= now)
    return query.order_by(artifacts.c.not_before, artifacts.c.seq)


def _read(connection: sa.Connection, query: sa.Select) -> list[Waiting]:
    return [Waiting(*row) for row in connection.execute(query)]


def _first_come(queued: Sequence[Waiting], free: FreeLeases, limit: int) -> list[int]:
    chosen: list[int] = []
    for waiting in queued:
        if len(chosen) == limit:
            break
        if free.take(waiting):
            chosen.append(waiting.seq)
    return chosen


def _from_lanes(connection: sa.Connection, free: FreeLeases, limit: int, now: float) -> list[int]:
    """Choose in queue order over all lanes; open a lane only when its head is next."""
    unopened, opened, chosen = deque(_heads(connection, now)), list[Waiting](), list[int]()
    while len(chosen) < limit and (unopened or opened):
        if unopened and (not opened or unopened[0] < opened[0]):
            head = unopened.popleft()
            if (count := free.left(head, limit - len(chosen))) > 0:
                is_in_lane = artifacts.c.lane == f"{head.resolver} {head.host}"
                for waiting in _read(connection, _due(now).where(is_in_lane).limit(count)):
                    heapq.heappush(opened, waiting)
        else:
            waiting = heapq.heappop(opened)
            if free.take(waiting):
                chosen.append(waiting.seq)
    return chosen


def _heads(connection: sa.Connection, now: float) -> list[Waiting]:
    """Return the first artifact of every lane; seeks from lane to lane without reading rows between."""
    a = artifacts.alias("a")
    is_queued = a.c.state == sa.literal_column("'queued'")
    first = sa.select(sa.func.min(artifacts.c.lane).label("lane")).where(QUEUED)
    lanes = first.cte("lanes", recursive=True)
    after = sa.select(sa.func.min(a.c.lane)).where(is_queued, a.c.lane > lanes.c.lane).scalar_subquery()
    lanes = lanes.union_all(sa.select(after).where(lanes.c.lane.is_not(None)))
    head = sa.select(a.c.seq).where(is_queued, a.c.lane == lanes.c.lane)
    head = head.order_by(a.c.not_before, a.c.seq).limit(1)
    heads = sa.select(head.scalar_subquery().label("seq")).where(lanes.c.lane.is_not(None)).cte("heads")
    query = sa.select(*_COLUMNS).join(heads, heads.c.seq == artifacts.c.seq)
    return _read(
        connection,
        query.where(artifacts.c.not_before <= now).order_by(artifacts.c.not_before, artifacts.c.seq),
    )

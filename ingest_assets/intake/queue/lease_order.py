"""Which artifacts are leased next: first come, first served, within the caps per host and resolver.

A lane is one resolver and one host. Those at the head of the line are looked at first; when they do not fill
a lease because their lanes are full, the head of every lane is looked at instead, by one seek in an index per
lane. So neither ten thousand artifacts of a full host nor ten thousand hosts hold up the others.
"""

import heapq
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from ingest_assets.intake.schema import artifacts
from ingest_assets.settings.intake import QueueOptions

# As literals: a partial index is used only when the planner sees the value it was made for.
QUEUED = artifacts.c.state == sa.literal_column("'queued'")
IN_PROGRESS = artifacts.c.state == sa.literal_column("'in_progress'")


@dataclass(frozen=True, slots=True, order=True)
class Waiting:
    """An artifact in line, ordered by its place."""

    not_before: float
    seq: int
    resolver: str = field(compare=False)
    host: str = field(compare=False)


_COLUMNS = [artifacts.c[name] for name in Waiting.__dataclass_fields__]


class Room:
    """How many leases more each host and resolver may have."""

    def __init__(self, options: QueueOptions, hosts: Counter[str], resolvers: Counter[str]) -> None:
        self._options = options
        self._hosts = hosts
        self._resolvers = resolvers

    @classmethod
    def now(cls, connection: sa.Connection, options: QueueOptions) -> "Room":
        """By the leases there are; in the transaction that will add to them."""
        lane = (artifacts.c.host, artifacts.c.resolver)
        rows = connection.execute(sa.select(*lane, sa.func.count()).where(IN_PROGRESS).group_by(*lane)).all()
        hosts, resolvers = Counter[str](), Counter[str]()
        for host, resolver, count in rows:
            hosts[host] += count
            resolvers[resolver] += count
        return cls(options, hosts, resolvers)

    def left(self, waiting: Waiting, wanted: int) -> int:
        """Of so many leases, how many this lane may have; files have no host to be kind to."""
        if waiting.host:
            wanted = min(wanted, self._options.max_per_host - self._hosts[waiting.host])
        cap = self._options.max_per_resolver.get(waiting.resolver)
        if cap is not None:
            wanted = min(wanted, cap - self._resolvers[waiting.resolver])
        return max(0, wanted)

    def take(self, waiting: Waiting) -> bool:
        """Count one more, if there is room."""
        if not self.left(waiting, 1):
            return False
        self._hosts[waiting.host] += 1
        self._resolvers[waiting.resolver] += 1
        return True

    def copy(self) -> "Room":
        """Another that can be filled without this one."""
        return Room(self._options, Counter(self._hosts), Counter(self._resolvers))


def choose(
    connection: sa.Connection,
    room: Room,
    limit: int,
    now: float,
    batch: str | None = None,
    first_look: int = 200,
) -> list[int]:
    """Numbers of the artifacts to lease, in the order of the line; `first_look` is how much of its head is
    read before the lanes are."""
    if batch is not None:  # a batch is small
        return _first_come(_read(connection, _line(now).where(artifacts.c.batch == batch)), room, limit)
    look = max(first_look, 2 * limit)
    head = _read(connection, _line(now).limit(look))
    chosen = _first_come(head, room.copy(), limit)
    if len(chosen) == limit or len(head) < look:
        return chosen
    return _from_lanes(connection, room, limit, now)


def _line(now: float) -> sa.Select:
    """Everybody whose time has come, in order."""
    query = sa.select(*_COLUMNS).where(QUEUED, artifacts.c.not_before <= now)
    return query.order_by(artifacts.c.not_before, artifacts.c.seq)


def _read(connection: sa.Connection, query: sa.Select) -> list[Waiting]:
    return [Waiting(*row) for row in connection.execute(query)]


def _first_come(line: Sequence[Waiting], room: Room, limit: int) -> list[int]:
    chosen: list[int] = []
    for waiting in line:
        if len(chosen) == limit:
            break
        if room.take(waiting):
            chosen.append(waiting.seq)
    return chosen


def _from_lanes(connection: sa.Connection, room: Room, limit: int, now: float) -> list[int]:
    """The same order as one line would give, opening a lane only when its head is next."""
    unopened, opened, chosen = deque(_heads(connection, now)), list[Waiting](), list[int]()
    while len(chosen) < limit and (unopened or opened):
        if unopened and (not opened or unopened[0] < opened[0]):
            head = unopened.popleft()
            if (count := room.left(head, limit - len(chosen))) > 0:
                is_here = artifacts.c.lane == f"{head.resolver} {head.host}"
                for waiting in _read(connection, _line(now).where(is_here).limit(count)):
                    heapq.heappush(opened, waiting)
        else:
            waiting = heapq.heappop(opened)
            if room.take(waiting):
                chosen.append(waiting.seq)
    return chosen


def _heads(connection: sa.Connection, now: float) -> list[Waiting]:
    """The first of every lane: from each lane to the next by the index, never over the rows between."""
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

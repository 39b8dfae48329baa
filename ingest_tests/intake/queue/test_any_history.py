"""Whatever workers do, the queue behaves like a simple model in Python."""

import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.queue.artifacts import Ending
from ingest_assets.intake.queue.queue import Filter, Queue
from ingest_assets.settings.intake import QueueOptions
from ingest_tests.conftest import examples_times
from ingest_tests.intake.postgres import Postgres
from ingest_tests.intake.queue.conftest import BUSY, GONE, NOW, artifact
from ingest_tests.intake.queue.ends import ack

HOSTS = ["", "a.org", "b.org"]
OPTIONS = QueueOptions(
    max_per_host=2,
    max_per_resolver={"slow": 1},
    max_job_attempts=2,
    retry_backoff_seconds=40,
    jitter_seconds=0,
    lease_ttl_seconds=60,
)


@dataclass
class Expected:
    """One artifact of the model."""

    host: str
    resolver: str
    seq: int
    not_before: float
    state: str = "queued"
    attempts: int = 0
    token: str | None = None
    expires: float = 0.0


class AnyHistory(RuleBasedStateMachine):
    """The queue beside its model; a crashed worker makes no further calls."""

    tokens: Bundle[str] = Bundle("tokens")

    def __init__(self, where: Path | str) -> None:
        super().__init__()
        self.ledger = Ledger(where)
        self.queue = Queue(self.ledger.database, OPTIONS, random.Random(0))
        self.model: dict[str, Expected] = {}
        self.now = NOW

    def teardown(self) -> None:
        self.ledger.close()

    def held(self, token: str) -> Expected | None:
        """Return the artifact that a token holds, if any."""
        return next((each for each in self.model.values() if each.token == token), None)

    @rule(number=st.integers(0, 15), host=st.sampled_from(HOSTS), resolver=st.sampled_from(["quick", "slow"]))
    def enqueue(self, number: int, host: str, resolver: str) -> None:
        report = self.queue.enqueue([artifact(number, host, resolver=resolver)], self.now)

        is_new = f"a{number}" not in self.model
        assert bool(report.new) is is_new
        if is_new:
            self.model[f"a{number}"] = Expected(host, resolver, len(self.model), self.now)

    @rule(target=tokens, limit=st.integers(1, 4))
    def lease(self, limit: int) -> object:
        leases = self.queue.lease("worker", limit, self.now)

        self._reclaim()
        assert [lease.artifact.artifact_id for lease in leases] == self._next(limit)
        for lease in leases:
            expected = self.model[lease.artifact.artifact_id]
            expected.state, expected.token, expected.expires = "in_progress", lease.token, self.now + 60
            expected.attempts += 1
        return multiple(*(lease.token for lease in leases))

    def _reclaim(self) -> None:
        for each in self.model.values():
            if each.state == "in_progress" and each.expires <= self.now:
                each.state = "queued" if each.attempts < 2 else "error"
                each.token, each.not_before = None, self.now

    def _next(self, limit: int) -> list[str]:
        running = [each for each in self.model.values() if each.state == "in_progress"]
        chosen = []
        for name, each in sorted(self.model.items(), key=lambda pair: (pair[1].not_before, pair[1].seq)):
            has_room = not each.host or sum(r.host == each.host for r in running) < 2
            has_room &= each.resolver != "slow" or sum(r.resolver == "slow" for r in running) < 1
            if each.state == "queued" and each.not_before <= self.now and has_room and len(chosen) < limit:
                running.append(each)
                chosen.append(name)
        return chosen

    @rule(token=tokens, state=st.sampled_from(["done", "skipped", "error"]))
    def ack(self, token: str, state: str) -> None:
        """Also with tokens that were lost or used before."""
        ending = Ending(state, GONE if state == "error" else None)  # type: ignore[arg-type]

        assert ack(self.queue, token, ending, self.now) is self._end(token, state)

    @rule(token=tokens, is_hopeless=st.booleans())
    def fail(self, token: str, is_hopeless: bool) -> None:
        held = self.held(token)
        is_last = is_hopeless or (held is not None and held.attempts >= 2)
        if held is not None:
            held.not_before = held.not_before if is_last else self.now + 40 * 2 ** (held.attempts - 1)

        was_held = self._end(token, "error" if is_last else "queued")

        assert self.queue.fail_and_retry(token, GONE if is_hopeless else BUSY, self.now) is was_held

    @rule(token=tokens, wait_s=st.sampled_from([0, 25]))
    def release(self, token: str, wait_s: int) -> None:
        if (held := self.held(token)) is not None:
            held.attempts, held.not_before = held.attempts - 1, self.now + wait_s

        assert self.queue.release(token, self.now, wait_s) is self._end(token, "queued")

    def _end(self, token: str, state: str) -> bool:
        if (held := self.held(token)) is None:
            return False
        held.state, held.token = state, None
        return True

    @rule(token=tokens)
    def heartbeat(self, token: str) -> None:
        held = self.held(token)
        if held is not None:
            held.expires = self.now + 60

        assert self.queue.heartbeat(token, self.now) is (held is not None)

    @rule(token=consumes(tokens))
    def crash(self, token: str) -> None:
        """The worker of this lease makes no further calls."""

    @rule(seconds=st.sampled_from([1, 30, 61, 100]))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds

    @rule(reset=st.booleans())
    def retry_failed(self, reset: bool) -> None:
        count = self.queue.retry_failed(self.now, reset_attempts=reset).count

        failed = [each for each in self.model.values() if each.state == "error"]
        assert count == len(failed)
        for each in failed:
            each.state, each.not_before = "queued", self.now
            each.attempts = 0 if reset else each.attempts

    @invariant()
    def agrees_with_the_model(self) -> None:
        rows = self.queue.find(Filter())
        assert {row.artifact_id: (row.state, row.attempts, row.not_before) for row in rows} == {
            name: (each.state, each.attempts, each.not_before) for name, each in self.model.items()
        }


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_the_queue_follows_any_history_of_its_workers(
    database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Enqueue, lease, ack, fail, release, heartbeat, crash, retry, and time that passes."""

    def fresh() -> AnyHistory:
        if database == "postgres":
            server: Postgres = request.getfixturevalue("postgres")
            return AnyHistory(server.fresh_url())
        return AnyHistory(Path(tempfile.mkdtemp(dir=tmp_path)) / "ledger.sqlite")

    run_state_machine_as_test(fresh, settings=settings(examples_times(0.5), stateful_step_count=40))

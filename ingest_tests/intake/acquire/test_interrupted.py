"""An interrupt during downloads."""

import os
import signal

import pytest

from ingest_assets.intake.queue.artifacts import NewArtifact
from ingest_tests.intake.acquire.conftest import Intake
from ingest_tests.intake.fetch.site import Site, Visit


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_returns_after_all_leases_are_released(intake: Intake, site: Site, workers: int) -> None:
    """The process may be killed next, and then leases must not remain; pieces can be far apart."""

    def dawdle(visit: Visit) -> None:
        visit.begin(200, content_length=1000)
        visit.send(b"x")
        if visit.path == "/first.md":
            visit.is_over.wait(0.5)
            os.kill(os.getpid(), signal.SIGINT)
        while not visit.is_over.wait(1.0):
            visit.send(b"x")

    signal.signal(signal.SIGINT, signal.default_int_handler)  # that of polars lets waits go on
    intake.queue_options = {"max_workers": workers}
    first = NewArtifact(artifact_id="first", url=site.page("/first.md", dawdle))
    intake.queue.enqueue([first], intake.now)
    batch = intake.add("second", url=site.page("/second.md", dawdle))

    with pytest.raises(KeyboardInterrupt):
        intake.run(batch)

    assert len(site.visits) == workers
    ended = [(intake[name].state, intake[name].attempts) for name in ("first", "second")]
    assert ended == [("queued", 0)] * 2


def test_a_silent_server_does_not_keep_the_lease_of_an_interrupted_run(intake: Intake, site: Site) -> None:
    """After the grace period the artifact is free, although the thread still waits for a first byte."""

    def silent(visit: Visit) -> None:
        visit.is_over.wait(0.3)
        os.kill(os.getpid(), signal.SIGINT)
        visit.is_over.wait(20)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    intake.grace_s = 0.5
    batch = intake.add("a", url=site.page("/a.md", silent))

    with pytest.raises(KeyboardInterrupt):
        intake.run(batch)

    assert (intake["a"].state, intake["a"].attempts, intake["a"].leased_by) == ("queued", 0, None)

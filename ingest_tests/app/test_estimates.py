"""Estimates of a run's duration from past runs, and why there is none."""

import pytest

from ingest_assets.app.execution import RunOptions
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.plan import fetch_estimate, past_times, stage_estimate
from ingest_assets.cli.plan import estimate_sentence, in_words, totals_sentence
from ingest_assets.intake.queue.artifacts import Artifact, NewArtifact
from ingest_assets.intake.queue.metrics import QueueMetrics
from ingest_assets.intake.queue.queue import Filter
from ingest_assets.runner import Manifest, ManifestRow

THREE = RunOptions(workers=3)


def ran(home: Home, item_id: str, seconds: float, status: str = "done", stage: str = "doctags") -> None:
    """One more row of the manifest."""
    manifest = Manifest(home.layout.manifest(stage))
    timings = {"exec_s": seconds} if status != "cancelled" else {}
    row = ManifestRow(stage, item_id, status, 1, "run", "print", "config", "2024-05-01", timings=timings)  # type: ignore[arg-type]
    manifest.append(row)
    manifest.close()


def test_a_stage_without_earlier_runs_has_no_estimate(home: Home):
    """Except with nothing to do: that takes no time."""
    unknown = stage_estimate(home, "doctags", [["a.md"]], THREE)

    assert (unknown.seconds, unknown.unknown) == (None, "no earlier runs")
    assert stage_estimate(home, "doctags", [[], []], THREE).seconds == 0.0


def test_documents_take_the_mean_of_their_format(home: Home):
    """For an unknown format, the mean of all documents is used."""
    for number, seconds in enumerate((8.0, 12.0)):
        ran(home, f"{number}.PDF", seconds)
    ran(home, "c.md", 1.0)

    past = past_times(home, "doctags")

    assert past is not None
    assert past.seconds(["x.pdf", "y.pdf"]) == 20.0
    assert past.seconds(["z.md"]) == 1.0
    assert past.seconds(["https://a.org/page"]) == pytest.approx(7.0)


def test_failed_and_cancelled_attempts_do_not_count(home: Home):
    """Their time is that of a failure."""
    ran(home, "a.md", 4.0)
    ran(home, "b.md", 900.0, "failed")
    ran(home, "c.md", 0.0, "cancelled")

    assert stage_estimate(home, "doctags", [["d.md"]], THREE).seconds == 4.0


def test_only_the_newest_documents_count(home: Home):
    """The machine, the settings or the documents may have changed since."""
    for _ in range(10):
        ran(home, "old.md", 100.0)
    for _ in range(500):
        ran(home, "new.md", 2.0)

    assert stage_estimate(home, "doctags", [["a.md"]], THREE).seconds == 2.0


def test_workers_share_a_batch_and_batches_follow_each_other(home: Home):
    """More workers than documents do not help."""
    ran(home, "a.md", 6.0)

    assert stage_estimate(home, "doctags", [["b.md"] * 6], THREE).seconds == 12.0
    assert stage_estimate(home, "doctags", [["b.md"], ["c.md"] * 2], THREE).seconds == 12.0


def test_on_a_cluster_the_number_of_workers_is_unknown(home: Home):
    """An estimate does not connect to the cluster."""
    home.layout.settings_file.write_text('[execution]\nbackend = "ray"\naddress = "10.255.255.1:6379"\n')
    ran(home, "a.md", 6.0)

    estimate = stage_estimate(open_home(home.layout.home), "doctags", [["b.md"]], RunOptions())

    assert estimate.seconds is None
    assert "cluster" in estimate.unknown


def queued(home: Home, *urls: str) -> list[Artifact]:
    """Artifacts of the queue."""
    home.queue.enqueue([NewArtifact(artifact_id=url, url=url) for url in urls], 1.0)
    return home.queue.find(Filter())


def test_fetching_takes_the_mean_time_within_the_queues_limits(home: Home):
    """By default eight at a time, four per host, and a delay between two documents of the same host."""
    hosts = queued(home, *(f"https://host{n}.org/a" for n in range(16)))
    same_host = queued(home, *(f"https://one.org/{n}" for n in range(11)))[16:]
    assert fetch_estimate(home, [hosts]).unknown == "no earlier fetches"
    measures = QueueMetrics(home.ledger.database)
    for seconds in (2.0, 6.0):
        measures.fetched(1000, seconds, "http")
    measures.store()

    assert fetch_estimate(home, [hosts]).seconds == 8.0
    assert fetch_estimate(home, [same_host]).seconds == 11.0
    assert fetch_estimate(home, [same_host[:1]]).seconds == 4.0
    assert fetch_estimate(home, [[], []]).seconds == 0.0


def test_an_estimate_in_words():
    """The total, its parts, and why a part is unknown."""
    seconds = {"fetch": 0.0, "doctags": 120.0, "dense": 59.0, "lexical": 1.0, "all": 180.0}

    assert estimate_sentence(seconds, {}) == "About 3 min, judging by past runs (convert 2 min, embed 60 s)."
    unknown = {"fetch": "nothing was fetched yet"}
    assert estimate_sentence(seconds | {"fetch": None, "all": None}, unknown) == (
        "More than 3 min, judging by past runs "
        "(convert 2 min, embed 60 s; fetch unknown: nothing was fetched yet)."
    )
    never = dict.fromkeys(("doctags", "dense", "lexical"), "never done here yet")
    assert estimate_sentence(dict.fromkeys((*never, "all")), never) == (
        "No estimate yet (convert, embed unknown: never done here yet)."
    )
    assert estimate_sentence({"doctags": 0.0, "all": 0.0}, {}) == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "a second"), (1, "1 s"), (119, "119 s"), (125, "2 min"), (8000, "2 h"), (200_000, "2 days")],
)
def test_a_time_as_people_say_it(seconds: float, words: str):
    """No more digits than are true."""
    assert in_words(seconds) == words


def test_totals_in_words():
    """Only what there is, for one and for many."""
    nothing = dict.fromkeys(("fetch", "doctags", "skipped", "failed_before", "removed", "waiting"), 0)

    assert totals_sentence(nothing) == "Nothing would be computed."
    assert totals_sentence(nothing | {"fetch": 3, "doctags": 12, "skipped": 480, "removed": 2}) == (
        "Would fetch 3, convert 12 documents; 480 are done and skipped, 2 are removed from the tables."
    )
    assert totals_sentence(nothing | {"doctags": 1, "failed_before": 1, "waiting": 1}) == (
        "Would convert 1 document; 1 failed before and is not retried, 1 is not due for fetching yet."
    )

"""A meter and the ledger count the same."""

from collections import Counter
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from ingest_tests.intake.acquire.conftest import Intake
from ingest_tests.intake.fetch.site import PDF, Site


class Gauge:
    """A meter and the values it recorded."""

    def __init__(self, intake: Intake) -> None:
        self._reader = InMemoryMetricReader()
        provider = MeterProvider([self._reader], shutdown_on_exit=False)
        intake.meter = provider.get_meter("test")

    def points(self) -> dict[str, list[Any]]:
        heard = self._reader.get_metrics_data()
        scopes = [scope for each in heard.resource_metrics for scope in each.scope_metrics] if heard else []
        return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}


def by(points: list[Any], label: str) -> Counter[str]:
    """Return the sums of a metric by one of its labels."""
    found: Counter[str] = Counter()
    for point in points:
        found[point.attributes[label]] += point.value
    return found


def test_the_meter_and_the_ledger_count_the_same(intake: Intake, site: Site) -> None:
    """Ends by state, retries, throttles, bytes and times, and the queue depth."""
    gauge = Gauge(intake)
    pages = {
        "good": lambda v: v.reply(200, PDF),
        "same": lambda v: v.reply(200, PDF),
        "gone": lambda v: v.reply(404),
        "busy": lambda v: v.reply(503),
    }
    for name, page in pages.items():
        intake.run(intake.add(name, url=site.page(f"/{name}", page)))
    intake.run(intake.add("asks", url=site.page("/asks", lambda v: v.reply(429, retry_after=900))))
    intake.run(intake.add("rests", url=site.page("/rests", lambda v: v.reply(200, PDF))))

    heard, totals = gauge.points(), intake.measures.totals()

    assert totals.completed == {"done": 1, "skipped": 1, "error": 1}
    assert by(heard["jobs_completed_total"], "state") == totals.completed
    assert (totals.retries, totals.throttled) == (2, 1)
    assert by(heard["retries_total"], "resolver") == {"http": totals.retries}
    assert by(heard["throttled_total"], "resolver") == {"http": totals.throttled}
    assert (
        by(heard["fetch_bytes_total"], "resolver") == {"http": totals.fetch_bytes} == {"http": 2 * len(PDF)}
    )
    (times,) = heard["fetch_seconds"]
    assert (times.count, totals.fetches) == (5, 5)
    assert abs(times.sum - totals.fetch_seconds) < 1e-6
    depths = {point.attributes["state"]: point.value for point in heard["queue_depth"]}
    assert depths == intake.queue.stats(intake.now).states
    assert depths == {"queued": 3, "in_progress": 0, "done": 1, "skipped": 1, "error": 1}

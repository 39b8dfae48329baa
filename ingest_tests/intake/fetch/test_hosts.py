"""Requests to a host are spaced out, and it is paused when it fails."""

import threading

import pytest

from ingest_assets.intake.fetch.errors import HostPaused
from ingest_assets.intake.fetch.hosts import MAX_HOSTS, Hosts
from ingest_assets.settings.intake import FetchOptions
from ingest_tests.intake.fetch.conftest import NOW, Desk, ManualClock, tried
from ingest_tests.intake.fetch.site import PDF, Site, Visit

MAX_LEASE_WAIT_S = 60.0


def _hosts(hands: ManualClock, **options: float) -> Hosts:
    return Hosts(FetchOptions(**({"politeness_delay_s": 2} | options)), hands.clock())


def test_documents_of_one_host_are_fetched_with_a_delay(site: Site, desk: Desk):
    """The first at once, the others after the delay; the hops of a redirect wait once."""
    site.page("/a", lambda v: v.reply(302, location="/a.pdf"))
    site.page("/a.pdf", lambda v: v.reply(body=PDF))
    fetcher = desk.fetcher(clock=desk.hands.clock(), politeness_delay_s=2)

    for _ in range(3):
        fetcher.fetch(site.url("/a"))

    assert desk.hands.sleeps == [2, 2]


def test_threads_take_turns_for_a_host():
    """Each gets its own turn, also when all ask at the same time."""
    hosts, turns, start = _hosts(ManualClock()), [], threading.Barrier(8)

    def ask() -> None:
        start.wait()
        turns.append(hosts.take_turn("a.example", MAX_LEASE_WAIT_S))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(turns) == [0, 2, 4, 6, 8, 10, 12, 14]
    assert hosts.take_turn("b.example", MAX_LEASE_WAIT_S) == 0


def test_a_long_wait_is_refused(site: Site, desk: Desk):
    """The worker does not wait, and the turn stays free for others."""
    url = site.page("/a.pdf", lambda v: v.reply(body=PDF))
    fetcher = desk.fetcher(clock=desk.hands.clock(), politeness_delay_s=100, total_timeout_s=20)

    fetcher.fetch(url)
    _, errors = tried(fetcher, url, attempts=2)
    desk.hands.now_s += 100
    fetcher.fetch(url)

    assert [e.code for e in errors] == ["E_FETCH_HOST_RESTING"] * 2
    assert [e.detail["retry_after_s"] for e in errors] == [100, 100]
    assert errors[0].detail["url"] == url
    assert desk.hands.sleeps == []


def test_a_host_that_keeps_failing_is_paused(site: Site, desk: Desk):
    """After three failures there is no request for a minute; then one request tries."""

    def page(visit: Visit) -> None:
        visit.reply(500) if visit.number <= 3 else visit.reply(body=PDF)

    url = site.page("/a.pdf", page)
    fetcher = desk.fetcher(clock=desk.hands.clock(), breaker_failures=3, breaker_open_s=60)

    _, errors = tried(fetcher, url, attempts=5)
    sent = site.count("/a.pdf")
    desk.hands.now_s += 60
    came, later = tried(fetcher, url)

    assert [e.code for e in errors] == ["E_FETCH_UNAVAILABLE"] * 3 + ["E_FETCH_HOST_RESTING"] * 2
    assert (errors[3].category, errors[3].retryable, errors[3].detail["retry_after_s"]) == (
        "provider",
        True,
        60,
    )
    assert "until 2024-05-01 10:41:00 UTC: its last 3 requests failed" in str(errors[3])
    assert sent == 3
    assert came is not None
    assert later == []


def test_one_request_probes_a_paused_host_and_the_others_wait():
    """A host that just recovered must not be overloaded."""
    hands = ManualClock()
    hosts = _hosts(hands, breaker_failures=1, breaker_open_s=60)
    hosts.failed("a.example")
    hands.now_s += 60

    hosts.take_turn("a.example", MAX_LEASE_WAIT_S)
    with pytest.raises(HostPaused):
        hosts.take_turn("a.example", MAX_LEASE_WAIT_S)
    hosts.answered("a.example")

    assert hosts.take_turn("a.example", MAX_LEASE_WAIT_S) >= 0


def test_a_failed_probe_pauses_the_host_again():
    """For as long as before."""
    hands = ManualClock()
    hosts = _hosts(hands, breaker_failures=2, breaker_open_s=60)
    hosts.failed("a.example")
    hosts.failed("a.example")
    hands.now_s += 60
    hosts.take_turn("a.example", MAX_LEASE_WAIT_S)
    hosts.failed("a.example")

    with pytest.raises(HostPaused) as caught:
        hosts.take_turn("a.example", MAX_LEASE_WAIT_S)

    assert caught.value.detail["retry_after_s"] == 60


def test_a_probe_without_a_result_does_not_pause_the_host_permanently():
    """Its worker may have been killed."""
    hands = ManualClock()
    hosts = _hosts(hands, breaker_failures=1, breaker_open_s=60)
    hosts.failed("a.example")
    hands.now_s += 60
    hosts.take_turn("a.example", MAX_LEASE_WAIT_S)
    hands.now_s += 60

    assert hosts.take_turn("a.example", MAX_LEASE_WAIT_S) == 0


def test_only_failures_in_a_row_count(site: Site, desk: Desk):
    """A host that responds between them works; so does one that returns 404 or 429."""
    site.page("/bad", lambda v: v.reply(500))
    site.page("/gone", lambda v: v.reply(404))
    site.page("/busy", lambda v: v.reply(429))
    fetcher = desk.fetcher(breaker_failures=2)

    codes = []
    for path in ("/bad", "/gone", "/bad", "/busy", "/bad", "/bad", "/bad"):
        codes += [e.code for e in tried(fetcher, site.url(path), attempts=1)[1]]

    assert codes[-1] == "E_FETCH_HOST_RESTING"
    assert codes[:-1].count("E_FETCH_HOST_RESTING") == 0


def test_a_paused_host_stays_paused_however_often_it_is_requested():
    """A refusal without a request is not a response of the host."""
    hands = ManualClock()
    hosts = _hosts(hands)
    hosts.pause("a.example", 50)
    hosts.pause("a.example", 5)
    hosts.answered("a.example")

    with pytest.raises(HostPaused) as caught:
        hosts.take_turn("a.example", MAX_LEASE_WAIT_S)

    assert caught.value.detail["retry_after_s"] == 50
    assert "it sent Retry-After" in str(caught.value)


def test_hosts_without_failures_or_waits_are_dropped():
    """A crawl of a million hosts must not fill the memory."""
    hands = ManualClock()
    hosts = _hosts(hands)
    hosts.failed("ill.example")
    for number in range(MAX_HOSTS):
        hosts.take_turn(f"{number}.example", MAX_LEASE_WAIT_S)
    hands.now_s = NOW + 10
    hosts.take_turn("one-more.example", MAX_LEASE_WAIT_S)

    assert set(hosts._hosts) == {"ill.example", "one-more.example"}

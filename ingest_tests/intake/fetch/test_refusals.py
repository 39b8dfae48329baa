"""A user's URL must not reach private addresses: not directly, not by a redirect, not by a name."""

import threading
import time

import httpx
import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.intake.fetch import Network, checked_url, shown
from ingest_assets.intake.fetch.addresses import require_allowed
from ingest_assets.intake.fetch.errors import AddressRefused, UrlRefused
from ingest_tests.intake.fetch.conftest import Desk, Switchboard, tried
from ingest_tests.intake.fetch.site import PDF, Site

PUBLIC = "93.184.216.34"
NAMES = {
    "public.example": [PUBLIC],
    "inside.example": ["10.0.0.7"],
    "mixed.example": [PUBLIC, "::1"],
    "nowhere.example": [],
    "xn--mnchen-3ya.example": [PUBLIC],
}


def _network(board: Switchboard | None = None) -> Network:
    """Resolves the names above and literal addresses; every connection goes to the loopback."""
    return Network(lambda host, port: NAMES.get(host, [host]), board or Switchboard())


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "::", "10.1.2.3", "172.16.0.1", "192.168.1.1"),
        *(
            "169.254.169.254",
            "fe80::1",
            "fe80::1%eth0",
            "fc00::1",
            "fec0::1",
            "100.64.0.1",
            "100.127.255.254",
        ),
        *("224.0.0.1", "ff02::1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "192.88.99.1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:100.64.0.1"),
        *("2002:7f00:1::", "2002:a00:1::1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1"),
        *("::7f00:1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "100::1"),
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str):
    """Also if it is embedded in another address."""
    with pytest.raises(AddressRefused) as caught:
        require_allowed("host.example", address, allow_private=False)

    assert address in str(caught.value)


@pytest.mark.parametrize(
    "address", [PUBLIC, "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "2002:808:808::1", "64:ff9b::808:808"]
)
def test_a_public_address_is_allowed(address: str):
    """Machines without IPv4 reach public addresses by NAT64."""
    require_allowed("host.example", address, allow_private=False)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.1.1", "fc00::1", "100.64.0.1"])
def test_private_addresses_are_allowed_by_a_setting(address: str):
    """For users who fetch from their own network."""
    require_allowed("host.example", address, allow_private=True)


@pytest.mark.parametrize("address", ["224.0.0.1", "0.0.0.0", "255.255.255.255", "ff02::1", "240.0.0.1"])
def test_some_addresses_are_always_refused(address: str):
    """No setting makes a multicast group a web server."""
    with pytest.raises(AddressRefused, match="correct the URL"):
        require_allowed("host.example", address, allow_private=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1"])
def test_no_spelling_of_the_loopback_is_fetched(host: str, site: Site, desk: Desk):
    """The system's resolver accepts them all."""
    site.page("/a.pdf", lambda v: v.reply(body=PDF))

    error = desk.failure(site.url("/a.pdf", host), allow_private=False)

    assert (error.code, error.category, error.retryable) == ("E_FETCH_ADDRESS", "config", False)
    assert "set fetch.allow_private = true if you trust it" in str(error)
    assert error.detail["url"] == site.url("/a.pdf", host)
    assert site.visits == []


@pytest.mark.parametrize("host", ["[::1]", "[::ffff:127.0.0.1]", "[fe80::1]"])
def test_no_address_in_brackets_is_fetched_either(host: str, site: Site, desk: Desk):
    """IPv6 literals."""
    error = desk.failure(site.url("/", host), allow_private=False)

    assert error.code == "E_FETCH_ADDRESS"


def test_an_address_in_brackets_is_fetched_where_it_is_allowed(site: Site, desk: Desk):
    """The brackets belong to the URL, not to the address."""
    board = Switchboard()
    site.page("/a.pdf", lambda v: v.reply(body=PDF))

    desk.fetch(site.url("/a.pdf", "[2606:4700::1111]"), allow_private=False, network=_network(board))

    assert board.dialled == ["2606:4700::1111"]
    assert site.visits[0].headers["host"] == f"[2606:4700::1111]:{site.port}"


@pytest.mark.parametrize("host", ["inside.example", "mixed.example"])
def test_a_name_with_a_private_address_is_refused(host: str, site: Site, desk: Desk):
    """One private address among public ones is enough, and there is no connection."""
    board = Switchboard()

    error = desk.failure(site.url("/a.pdf", host), allow_private=False, network=_network(board))

    assert error.code == "E_FETCH_ADDRESS"
    assert host in str(error)
    assert board.dialled == []


def test_the_checked_address_is_the_one_connected_to(site: Site, desk: Desk):
    """A name server that changes its answer is not asked again."""
    answers = iter([[PUBLIC], ["127.0.0.1"]])
    board = Switchboard()
    site.page("/a.pdf", lambda v: v.reply(body=PDF))

    desk.fetch(
        site.url("/a.pdf", "rebinding.example"),
        allow_private=False,
        network=Network(lambda host, port: next(answers), board),
    )

    assert board.dialled == [PUBLIC]
    assert site.visits[0].headers["host"] == f"rebinding.example:{site.port}"


@pytest.mark.parametrize("target", ["http://10.0.0.7/secret", "http://inside.example/", "//127.0.0.1/x"])
def test_a_redirect_to_a_private_address_is_refused(target: str, site: Site, desk: Desk):
    """Permanent, with category config; the private host gets no request."""
    board = Switchboard()
    site.page("/a.pdf", lambda v: v.reply(302, location=target))
    fetcher = desk.fetcher(allow_private=False, network=_network(board))

    came, errors = tried(fetcher, site.url("/a.pdf", "public.example"))

    assert came is None
    assert [(e.code, e.category, e.retryable) for e in errors] == [("E_FETCH_ADDRESS", "config", False)]
    assert "private address" in str(errors[0]) or "loopback address" in str(errors[0])
    assert board.dialled == [PUBLIC]


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            " ",
            "a.pdf",
            "/a.pdf",
            "//host/a",
            "file:///etc/passwd",
            "ftp://host/x",
            "http://",
            "http:///x",
        ),
        *(
            "http://user:s3cret@host/",
            "https://tok-s3cret@host/",
            "http://a b/",
            "http://host:99999/",
            "http://host:0/",
        ),
        *(
            "http://[::1",
            "http://ho\nst/",
            "http://host/\udcff",
            "http://[fe80::1%25eth0]/",
            "http://\u3002/",
        ),
    ],
)
def test_an_invalid_url_is_refused_before_any_request(url: str, desk: Desk):
    """In one line without a password."""
    error = desk.failure(url)

    assert (error.code, error.category, error.retryable) == ("E_FETCH_URL", "input", False)
    assert "s3cret" not in str(error) + str(error.detail)


def test_a_url_in_any_script_is_fetched(site: Site, desk: Desk):
    """Names in IDNA, paths in percent-encoded UTF-8."""
    site.page("/stra%C3%9Fe.pdf", lambda v: v.reply(body=PDF))

    came = desk.fetch(
        f"http://München.example:{site.port}/straße.pdf?q=ä b", allow_private=False, network=_network()
    )

    assert site.visits[0].path == "/stra%C3%9Fe.pdf?q=%C3%A4%20b"
    assert site.visits[0].headers["host"] == f"xn--mnchen-3ya.example:{site.port}"
    assert came.final_url == f"http://xn--mnchen-3ya.example:{site.port}/stra%C3%9Fe.pdf?q=%C3%A4%20b"


def test_equal_urls_have_one_canonical_form():
    """Otherwise one document would be fetched under two names."""
    assert str(checked_url(" HTTPS://Example.COM:443/a/../b#part ")) == "https://example.com/b"


def test_no_secret_of_a_url_is_shown():
    """Signatures and keys are in queries and before the @."""
    url = "https://me:pw@host/a.pdf?X-Signature=abc&key=def&flag#frag"

    assert shown(url) == "https://host/a.pdf?X-Signature=…&key=…"
    assert shown("http://host/?justatoken") == "http://host/?…"
    assert shown("//me:pw@host/x") == "//host/x"
    assert len(shown("http://host/" + "a" * 5000)) == 200
    assert "\n" not in shown("http://host/\nINFO forged line")


def test_a_failure_shows_no_secret(site: Site, desk: Desk):
    """Neither message nor detail."""
    site.page("/a", lambda v: v.reply(404))

    error = desk.failure(site.url("/a?token=s3cret"))

    assert "s3cret" not in str(error) + str(error.detail)
    assert "token=…" in str(error)


def test_a_name_without_an_address_is_retried(desk: Desk):
    """Name servers fail temporarily."""
    error = desk.failure("http://nowhere.example/a.pdf", network=_network())

    assert (error.code, error.category, error.retryable) == ("E_FETCH_DNS", "io", True)
    assert "nowhere.example has no address" in str(error)


def test_resolving_has_a_timeout(desk: Desk):
    """The system's resolver has none."""
    answer = threading.Event()

    def slow(host: str, port: int) -> list[str]:
        answer.wait(20)
        return []

    began = time.monotonic()
    error = desk.failure("http://slow.example/", network=Network(slow), connect_timeout_s=0.2)
    answer.set()

    assert (error.code, error.category, error.retryable) == ("E_FETCH_TIMEOUT", "timeout", True)
    assert time.monotonic() - began < 5


def test_the_next_address_is_tried_when_one_does_not_respond(site: Site, desk: Desk):
    """A host can have several, and one can be down."""
    site.page("/a.pdf", lambda v: v.reply(body=PDF))
    network = Network(lambda host, port: ["127.0.0.99", "127.0.0.1"])

    assert desk.fetch(site.url("/a.pdf", "twice.example"), network=network).size_bytes == len(PDF)


def test_a_proxy_is_used_only_if_the_settings_allow_it(
    site: Site, desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    """Literal addresses are still refused, except the proxy's own."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{site.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    site.page("http://public.example/a.pdf", lambda v: v.reply(body=PDF))
    through = {"allow_private": False, "use_environment_proxies": True}

    direct = desk.failure("http://nowhere.example/a.pdf", allow_private=False, network=_network())
    came = desk.fetch("http://public.example/a.pdf", **through)
    inside = desk.failure("http://10.0.0.7/", **through)

    assert direct.code == "E_FETCH_DNS"
    assert came.size_bytes == len(PDF)
    assert inside.code == "E_FETCH_ADDRESS"


def test_an_invalid_proxy_is_a_configuration_error(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    """In one line."""
    monkeypatch.setenv("http_proxy", "gopher://proxy:70")

    with pytest.raises(ConfigError, match="HTTP_PROXY: should be the URL of an http proxy"):
        desk.fetcher(use_environment_proxies=True).fetch("http://public.example/")


def test_a_refused_url_has_its_own_error():
    """The queue checks a URL before it stores it."""
    with pytest.raises(UrlRefused):
        checked_url("ftp://host/")
    assert isinstance(checked_url("http://host/"), httpx.URL)

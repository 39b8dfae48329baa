"""The certificate must match the host, whatever address is used."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest_assets.intake.fetch import Network
from ingest_assets.intake.fetch.exchange import trusted_certificates
from ingest_tests.certificates import own_certificate
from ingest_tests.intake.fetch.conftest import Desk, Switchboard
from ingest_tests.intake.fetch.site import PDF, Site

PUBLIC = "93.184.216.34"


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site with a certificate for `files.example`, trusted through SSL_CERT_FILE."""
    context, certificate = own_certificate(tmp_path, "files.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    trusted_certificates.cache_clear()
    with Site(tls=context).open() as site:
        site.page("/a.pdf", lambda v: v.reply(body=PDF))
        yield site
    trusted_certificates.cache_clear()


def _network(board: Switchboard) -> Network:
    return Network(lambda host, port: [PUBLIC], board)


def test_the_name_is_checked_although_the_address_is_used(secure: Site, desk: Desk):
    """SNI, certificate and Host header have the name."""
    board = Switchboard()

    came = desk.fetch(secure.url("/a.pdf", "files.example"), allow_private=False, network=_network(board))

    assert came.path.read_bytes() == PDF
    assert board.dialled == [PUBLIC]
    assert secure.visits[0].headers["host"] == f"files.example:{secure.port}"


def test_a_certificate_of_another_host_is_refused(secure: Site, desk: Desk):
    """Not transient: the certificate will be the same tomorrow."""
    url = secure.url("/a.pdf", "other.example")

    error = desk.failure(url, allow_private=False, network=_network(Switchboard()))

    assert (error.code, error.category, error.retryable) == ("E_FETCH_CERTIFICATE", "provider", False)
    assert "has an invalid TLS certificate" in str(error)
    assert secure.visits == []


def test_a_certificate_of_an_unknown_authority_is_refused(
    secure: Site, desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    """Without SSL_CERT_FILE, only known authorities count."""
    monkeypatch.delenv("SSL_CERT_FILE")
    trusted_certificates.cache_clear()

    error = desk.failure(
        secure.url("/a.pdf", "files.example"), allow_private=False, network=_network(Switchboard())
    )

    assert error.code == "E_FETCH_CERTIFICATE"


def test_a_server_without_tls_is_a_failed_connection(site: Site, desk: Desk):
    """https at a port that serves http."""
    error = desk.failure(f"https://127.0.0.1:{site.port}/a.pdf", idle_timeout_s=2, connect_timeout_s=1)

    assert error.code in ("E_FETCH_CONNECTION", "E_FETCH_TIMEOUT")
    assert error.retryable

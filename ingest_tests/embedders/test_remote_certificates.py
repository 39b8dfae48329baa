"""The `openai` provider and an https endpoint whose certificate only the operator vouches for."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingest_assets.embedders.errors import CertificatesUnreadable, EndpointUnreachable
from ingest_assets.embedders.remote import RemoteEmbedder
from ingest_tests.certificates import own_certificate
from ingest_tests.embedders.vector_server import QUICK, TEXTS, options_for, serving, vectors_of


@dataclass(frozen=True)
class Secure:
    """An address that speaks TLS, and the certificate it shows."""

    url: str
    certificate: Path


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    """An endpoint at `localhost` with a certificate of its own making."""
    context, certificate = own_certificate(tmp_path_factory.mktemp("tls"), "localhost")
    with serving() as server:
        server.server.socket = context.wrap_socket(server.server.socket, server_side=True)
        yield Secure(f"https://localhost:{server.server.server_port}/v1/embeddings", certificate)


@pytest.fixture(autouse=True)
def _no_proxies_or_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "localhost")
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


def _embedder(url: str, *, use_environment_proxies: bool = False) -> RemoteEmbedder:
    options = options_for(url, retries=0, use_environment_proxies=use_environment_proxies)
    return RemoteEmbedder(options, {}, QUICK)


@pytest.mark.parametrize("use_environment_proxies", [False, True])
def test_certificates_of_the_environment_count_with_and_without_proxies(
    secure: Secure, use_environment_proxies: bool, monkeypatch: pytest.MonkeyPatch
):
    """As they do where documents are fetched."""
    monkeypatch.setenv("SSL_CERT_FILE", str(secure.certificate))
    embedder = _embedder(secure.url, use_environment_proxies=use_environment_proxies)

    assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()
    embedder.close()


def test_proxies_of_the_environment_count_only_where_the_settings_say_so(
    secure: Secure, monkeypatch: pytest.MonkeyPatch
):
    """Trusting its certificates is another matter."""
    monkeypatch.setenv("SSL_CERT_FILE", str(secure.certificate))
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    embedder = _embedder(secure.url)

    assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()
    embedder.close()


def test_a_certificate_that_nobody_vouches_for_says_where_to(secure: Secure):
    """In one line, with the variable's name."""
    embedder = _embedder(secure.url)
    says = r"has no certificate that this worker trusts \(.*\); set SSL_CERT_FILE to .*\.url\.$"
    with pytest.raises(EndpointUnreachable, match=says) as caught:
        embedder.embed(TEXTS)

    assert "\n" not in str(caught.value)
    embedder.close()


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_read_are_a_matter_of_settings(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The system's own words would not name the variable."""
    named = tmp_path / "authority.pem"
    if content is not None:
        named.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(named))
    with pytest.raises(CertificatesUnreadable, match="SSL_CERT_FILE") as caught:
        _embedder("https://localhost:9/v1/embeddings")

    assert (caught.value.category, caught.value.retryable) == ("config", False)

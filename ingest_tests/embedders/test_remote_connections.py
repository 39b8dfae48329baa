"""Connections to an endpoint: certificates, and a deadline for the whole request."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingest_assets.embedders.errors import CertificatesUnreadable, EndpointTimeout, EndpointUnreachable
from ingest_assets.embedders.remote import RemoteEmbedder
from ingest_tests.certificates import own_certificate
from ingest_tests.embedders.vector_server import (
    QUICK,
    TEXTS,
    options_for,
    right_answer,
    serving,
    vectors_of,
)


@dataclass(frozen=True)
class Secure:
    """A TLS server and its certificate."""

    url: str
    certificate: Path


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    """An endpoint at `localhost` with a self-signed certificate."""
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
def test_certificates_of_the_environment_are_used_with_and_without_proxies(
    secure: Secure, use_environment_proxies: bool, monkeypatch: pytest.MonkeyPatch
):
    """As for fetching documents."""
    monkeypatch.setenv("SSL_CERT_FILE", str(secure.certificate))
    embedder = _embedder(secure.url, use_environment_proxies=use_environment_proxies)

    assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()
    embedder.close()


def test_proxies_of_the_environment_are_used_only_if_enabled(secure: Secure, monkeypatch: pytest.MonkeyPatch):
    """Independently of its certificates."""
    monkeypatch.setenv("SSL_CERT_FILE", str(secure.certificate))
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    embedder = _embedder(secure.url)

    assert (embedder.embed(TEXTS) == vectors_of(TEXTS)).all()
    embedder.close()


def test_the_error_for_an_untrusted_certificate_says_what_to_set(secure: Secure):
    """In one line, with the variable's name."""
    embedder = _embedder(secure.url)
    says = r"has a certificate that this worker does not trust \(.*\). Set SSL_CERT_FILE to .*\.url\.$"
    with pytest.raises(EndpointUnreachable, match=says) as caught:
        embedder.embed(TEXTS)

    assert "\n" not in str(caught.value)
    embedder.close()


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_unreadable_certificates_are_a_config_error(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The system's own message would not name the variable."""
    named = tmp_path / "authority.pem"
    if content is not None:
        named.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(named))
    with pytest.raises(CertificatesUnreadable, match="SSL_CERT_FILE") as caught:
        _embedder("https://localhost:9/v1/embeddings")

    assert (caught.value.category, caught.value.retryable) == ("config", False)


LIMIT_SECONDS = 0.5
BODY = right_answer(["a"]).body
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n\r\n" % len(BODY)

Answering = Callable[[socket.socket, int], None]


def _slowly(content: bytes, connection: socket.socket) -> None:
    """Send with pauses that are each below the limit, but together above it."""
    for at in range(len(content)):
        connection.sendall(content[at : at + 1])
        time.sleep(LIMIT_SECONDS / 5)


def _slow_headers(connection: socket.socket, _number: int) -> None:
    _slowly(HEAD + LENGTH + BODY, connection)


def _slow_body(connection: socket.socket, _number: int) -> None:
    connection.sendall(HEAD + LENGTH)
    _slowly(BODY, connection)


def _slow_body_without_a_length(connection: socket.socket, _number: int) -> None:
    connection.sendall(HEAD + b"Connection: close\r\n\r\n")
    _slowly(BODY, connection)


def _slow_refusal(connection: socket.socket, _number: int) -> None:
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 1000\r\n\r\n")
    _slowly(b"x" * 1000, connection)


def _slow_the_second_time(connection: socket.socket, number: int) -> None:
    connection.sendall(HEAD + LENGTH + BODY) if number == 0 else _slow_headers(connection, number)


def _was_asked(connection: socket.socket) -> bool:
    """Read one request to its end; False if there is none."""
    with connection.makefile("rb") as stream:
        length = 0
        while line := stream.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return length > 0 and len(stream.read(length)) == length


@pytest.fixture
def serve() -> Iterator[Callable[[Answering], str]]:
    """Start a server that answers the requests of a connection like this; return its URL."""
    listener = socket.create_server(("127.0.0.1", 0))

    def talk(connection: socket.socket, answer: Answering) -> None:
        with connection:
            try:
                for number in range(100):
                    if not _was_asked(connection):
                        return
                    answer(connection, number)
                    if answer is _slow_body_without_a_length:
                        return
            except OSError:  # the client has stopped waiting
                return

    def accept(answer: Answering) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection, answer), daemon=True).start()

    def start(answer: Answering) -> str:
        threading.Thread(target=accept, args=(answer,), daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1/embeddings"

    yield start
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.mark.parametrize("answer", [_slow_headers, _slow_body, _slow_body_without_a_length, _slow_refusal])
def test_a_slow_response_has_the_same_deadline(serve: Callable[[Answering], str], answer: Answering):
    """Otherwise a server could block a lane for hours."""
    options = options_for(serve(answer), timeout_seconds=LIMIT_SECONDS, retries=0)
    embedder = RemoteEmbedder(options, {}, QUICK)
    began = time.monotonic()

    with pytest.raises(EndpointTimeout, match=r"did not answer within 0.5 s"):
        embedder.embed(["a"])

    assert time.monotonic() - began < 2 * LIMIT_SECONDS + 1  # includes the probe
    embedder.close()


def test_a_reused_connection_has_a_deadline_too(serve: Callable[[Answering], str]):
    """Its first response was fast."""
    options = options_for(serve(_slow_the_second_time), timeout_seconds=LIMIT_SECONDS, retries=1)
    embedder = RemoteEmbedder(options, {}, QUICK)
    assert embedder.embed(["a"]).tobytes() == vectors_of(["a"]).tobytes()
    began = time.monotonic()

    # The second attempt uses a new connection.
    embedder.embed(["a"])

    assert LIMIT_SECONDS <= time.monotonic() - began < 2 * LIMIT_SECONDS + 1
    embedder.close()


def test_a_connection_is_reused_after_a_response_in_time(
    serve: Callable[[Answering], str],
):
    """The deadline of one request does not end a later one."""
    numbers = []

    def answer(connection: socket.socket, number: int) -> None:
        numbers.append(number)
        connection.sendall(HEAD + LENGTH + BODY)

    options = options_for(serve(answer), timeout_seconds=LIMIT_SECONDS, retries=0)
    embedder = RemoteEmbedder(options, {}, QUICK)
    for _ in range(4):
        embedder.embed(["a"])
        time.sleep(LIMIT_SECONDS / 2)

    assert numbers == [0, 1, 2, 3]
    embedder.close()

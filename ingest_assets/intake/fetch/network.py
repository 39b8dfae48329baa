"""Connect only to checked addresses: resolve once, check the addresses, and connect to those.

Resolving again between check and connection would let a name server change its answer (DNS rebinding).
"""

import queue
import socket
import ssl
import threading
import time
import typing
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import httpcore
import httpx

from ingest_assets.core.errors import ConfigError
from ingest_assets.intake.fetch.addresses import require_allowed
from ingest_assets.intake.fetch.errors import FetchTimeout, NameUnknown

# Time as an argument, and the one deadline for everything in a fetch.


@dataclass(frozen=True, slots=True)
class Clock:
    """Clocks and sleep, which tests replace."""

    epoch_s: Callable[[], float] = time.time
    monotonic_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class Deadline:
    """The end of a fetch, `limit_s` seconds from now; `url` must come from `shown`."""

    def __init__(self, limit_s: float, url: str, clock: Clock) -> None:
        self._limit_s, self._url, self._clock = limit_s, url, clock
        self._ends_s = clock.monotonic_s() + limit_s

    def left_s(self) -> float:
        """Return the seconds left; raise `FetchTimeout` if there are none."""
        left = self._ends_s - self._clock.monotonic_s()
        if left <= 0:
            raise FetchTimeout(
                f"{self._url} was not complete after {self._limit_s:g} s. "
                "Raise fetch.total_timeout_s or stages.documents.per_item_timeout_s if that happens often.",
                detail={"url": self._url},
            )
        return left


T = typing.TypeVar("T")
Resolver = Callable[[str, int], Sequence[str]]


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host, each once, in the system's order."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in infos))


@dataclass(frozen=True, slots=True)
class Network:
    """The machine's resolver and sockets, which tests replace."""

    resolver: Resolver = resolve
    sockets: httpcore.NetworkBackend = field(default_factory=httpcore.SyncBackend)


class TimedStream(httpcore.NetworkStream):
    """A connection in which every wait ends at the fetch's deadline. Records whether the server closed it."""

    def __init__(self, inner: httpcore.NetworkStream, dialler: "CheckedDialler") -> None:
        self._inner = inner
        self._dialler = dialler

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return received bytes; none if the server closed the connection."""
        received = self._timed(lambda limit_s: self._inner.read(max_bytes, limit_s), timeout)
        self._dialler.peer_closed = not received
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all bytes."""
        self._timed(lambda limit_s: self._inner.write(buffer, limit_s), timeout)

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Start TLS; the certificate must match the host's name, not the address connected to."""
        inner = self._timed(
            lambda limit_s: self._inner.start_tls(ssl_context, server_hostname, limit_s), timeout
        )
        return TimedStream(inner, self._dialler)

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()

    def get_extra_info(self, info: str) -> typing.Any:
        """Return what httpcore asks about the socket."""
        return self._inner.get_extra_info(info)

    def _timed(self, call: Callable[[float], T], timeout: float | None) -> T:
        left = self._dialler.deadline.left_s()
        try:
            return call(left if timeout is None else min(timeout, left))
        except httpcore.TimeoutException:
            self._dialler.deadline.left_s()  # raises its own error if the deadline has passed
            raise


class CheckedDialler(httpcore.NetworkBackend):
    """Resolves a host, checks every address, and connects to the first that accepts."""

    def __init__(self, deadline: Deadline, network: Network, *, allow_private: bool) -> None:
        self.deadline = deadline
        self.peer_closed = False
        self.proxy_host: str | None = None  # not checked: the operator chose it
        self._network = network
        self._allow_private = allow_private

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to a host. Rejects it if any address is not allowed, since their order can change."""
        self.peer_closed = False
        addresses = self._resolve(host, port, timeout)
        for address in addresses if host != self.proxy_host else ():
            require_allowed(host, address, allow_private=self._allow_private)
        return self._dial(addresses, port, timeout, local_address, socket_options or ())

    def _dial(
        self,
        addresses: Sequence[str],
        port: int,
        timeout: float | None,
        local_address: str | None,
        options: Iterable[httpcore.SOCKET_OPTION],
    ) -> httpcore.NetworkStream:
        failure: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in addresses:
            left = self.deadline.left_s()
            limit_s = left if timeout is None else min(timeout, left)
            try:
                inner = self._network.sockets.connect_tcp(address, port, limit_s, local_address, options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return TimedStream(inner, self)
        raise failure or httpcore.ConnectError("no address")

    def _resolve(self, host: str, port: int, timeout: float | None) -> Sequence[str]:
        """Resolve in a thread, since the resolver has no timeout; abandon the thread when it is late."""
        answers: queue.SimpleQueue[Sequence[str] | OSError | UnicodeError] = queue.SimpleQueue()

        def ask() -> None:
            try:
                answers.put(self._network.resolver(host, port))
            except (OSError, UnicodeError) as error:
                answers.put(error)

        threading.Thread(target=ask, name="fetch-dns", daemon=True).start()
        left = self.deadline.left_s()
        try:
            answer = answers.get(timeout=left if timeout is None else min(timeout, left))
        except queue.Empty:
            self.deadline.left_s()
            raise FetchTimeout(
                f"{host} was not resolved within {timeout:g} s (fetch.connect_timeout_s).",
                detail={"host": host},
            ) from None
        if isinstance(answer, Exception) or not answer:
            why = answer.strerror or "unknown error" if isinstance(answer, OSError) else "invalid host name"
            raise NameUnknown(
                f"{host} has no address ({why}). Check the URL.",
                detail={"host": host},
            )
        return answer


class DirectTransport(httpx.BaseTransport):
    """An httpx transport that connects through a `CheckedDialler`; raises httpcore's errors unchanged."""

    def __init__(
        self, dialler: CheckedDialler, context: ssl.SSLContext, proxy: httpx.Proxy | None = None
    ) -> None:
        through = httpcore.Proxy(str(proxy.url), auth=proxy.auth) if proxy else None
        self._pool = httpcore.ConnectionPool(ssl_context=context, network_backend=dialler, proxy=through)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request and return the response, whose body is not read yet."""
        answer = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        return self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


def environment_proxy(url: httpx.URL) -> httpx.Proxy | None:
    """Return the environment's proxy for a URL, if any."""
    named = None if urllib.request.proxy_bypass(url.host) else urllib.request.getproxies().get(url.scheme)
    if not named:
        return None
    try:
        proxy = httpx.Proxy(named if "://" in named else f"http://{named}")
    except (ValueError, httpx.InvalidURL):
        proxy = None
    if proxy is None or proxy.url.scheme not in ("http", "https"):
        raise ConfigError(
            f"{url.scheme.upper()}_PROXY: should be the URL of an http proxy, as in http://proxy:3128."
        )
    return proxy

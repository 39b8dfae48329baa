"""Lines to a server: a request can be broken off from outside, when it is late and at the end of all.

httpx limits every single wait, so that a server which sends a byte now and then is never late.
"""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

import httpx

from ingest_assets.embedders.endpoint_errors import CertificatesUnreadable

_OPENED = ("connect_tcp.complete", "start_tls.complete")


class Lines:
    """As many lines as there are requests at the same time, each used again; `options` are httpx's."""

    def __init__(self, **options: Any) -> None:
        # Loading the certificates takes longer than many a request: all lines share them.
        self._options = {"verify": _trusted_certificates(), **options}
        self._lock = threading.Lock()
        self._free: list[_Line] = []
        self._all: WeakSet[_Line] = WeakSet()
        self._is_closed = False

    @contextmanager
    def posting(self, url: str, content: bytes, seconds: float) -> Iterator[httpx.Response]:
        """The answer to a POST of JSON, its body still to be read; `httpx.ReadTimeout` when all of that takes
        longer."""
        line = self._taken()
        try:
            with (
                line.within(seconds),
                line.client.stream(
                    "POST",
                    url,
                    content=content,
                    headers={"Content-Type": "application/json"},
                    extensions={"trace": line.note},
                ) as response,
            ):
                yield response
        finally:
            self._give_back(line)

    def close(self) -> None:
        """Whoever reads or writes now meets a broken connection; no request begins any more."""
        with self._lock:
            self._is_closed = True
            lines = list(self._all)
        for line in lines:
            line.break_off()
            line.client.close()

    def _taken(self) -> "_Line":
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the lines are closed")
            line = self._free.pop() if self._free else _Line(httpx.Client(**self._options))
            self._all.add(line)
            return line

    def _give_back(self, line: "_Line") -> None:
        with self._lock:
            self._free.append(line)


def _trusted_certificates() -> ssl.SSLContext:
    """certifi's authorities, or those of SSL_CERT_FILE or SSL_CERT_DIR, whether or not proxies are used."""
    try:
        return httpx.create_ssl_context(trust_env=True)
    except OSError as error:
        raise CertificatesUnreadable(
            f"On this worker the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read "
            f"({type(error).__name__}); set it to a PEM file that is there, or unset it."
        ) from None


class _Line:
    """A client for one request at a time, so that its network streams are that request's."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self._streams: WeakSet[Any] = WeakSet()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Break off what is late, and say that this is what happened, whatever it looked like."""
        watch = _Watch(self)
        timer = threading.Timer(seconds, watch.end)
        timer.daemon = True
        timer.start()
        try:
            yield
        except httpx.HTTPError as error:
            if watch.stop():
                raise httpx.ReadTimeout("the answer takes too long") from error
            raise
        finally:
            timer.cancel()
            is_late = watch.stop()
        if is_late:  # where only the end of the connection ends an answer, this one looked whole
            raise httpx.ReadTimeout("the answer takes too long")

    def note(self, event: str, details: dict[str, Any]) -> None:
        """Keep every stream that is opened, for whoever breaks it off."""
        if event.endswith(_OPENED):
            self._streams.add(details["return_value"])

    def break_off(self) -> None:
        for stream in list(self._streams):
            opened = stream.get_extra_info("socket")
            if opened is not None:
                with suppress(OSError):  # closed by the other side, or handed on to TLS
                    opened.shutdown(socket.SHUT_RDWR)


class _Watch:
    """Ends one request, and never the next on its line."""

    def __init__(self, line: _Line) -> None:
        self._line = line
        self._lock = threading.Lock()
        self._is_stopped = False
        self._is_late = False

    def end(self) -> None:
        with self._lock:
            if not self._is_stopped:
                self._is_late = True
                self._line.break_off()

    def stop(self) -> bool:
        """The request is over; True when it was late."""
        with self._lock:
            self._is_stopped = True
            return self._is_late

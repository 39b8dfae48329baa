"""A web site on the loopback, on raw sockets: it can lie, delay and hang up like real servers."""

import contextlib
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

PDF = b"%PDF-1.7\n" + bytes(range(256)) * 40
Handler = Callable[["Visit"], None]


@dataclass
class Visit:
    """One request, and the way to respond; `number` counts the requests to this path from one."""

    path: str
    headers: dict[str, str]
    number: int
    connection: socket.socket
    is_over: threading.Event

    def send(self, content: bytes) -> None:
        """Send bytes unchanged."""
        self.connection.sendall(content)

    def begin(self, status: int, **headers: Any) -> None:
        """Send status and headers; `content_length=5` becomes `content-length: 5`."""
        lines = [f"HTTP/1.1 {status} Whatever", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def reply(self, status: int = 200, body: bytes = b"", **headers: Any) -> None:
        """Send a complete and correct response."""
        self.begin(status, content_length=len(body), **headers)
        self.send(body)

    def serve(self, body: bytes, etag: str, cut_at: int | None = None) -> None:
        """Send a file like a good server, ranges included; `cut_at` hangs up after that many bytes."""
        start, status, headers = 0, 200, {"etag": etag}
        asked = self.headers.get("range", "")
        if asked and self.headers.get("if-range", etag) == etag:
            start, status = int(asked.removeprefix("bytes=").rstrip("-")), 206
            headers["content_range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        self.begin(status, content_length=len(body) - start, **headers)
        self.send(body[start:cut_at])


@dataclass
class Site:
    """Pages by path. Records every request."""

    pages: dict[str, Handler] = field(default_factory=dict)
    visits: list[Visit] = field(default_factory=list)
    tls: ssl.SSLContext | None = None
    port: int = 0

    def __post_init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.is_over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """Return the URL of a page."""
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    def page(self, path: str, handler: Handler) -> str:
        """Add a page and return its URL."""
        self.pages[path] = handler
        return self.url(path)

    def count(self, path: str) -> int:
        """Return the number of requests for a page."""
        return self._seen[path]

    @contextlib.contextmanager
    def open(self) -> Iterator["Site"]:
        """Serve the site during the `with` block."""
        accepting = threading.Thread(target=self._accept, daemon=True)
        accepting.start()
        try:
            yield self
        finally:
            self.is_over.set()
            self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with connection:
                visit = self._received(connection)
                self.pages[visit.path.partition("?")[0]](visit)
                connection.shutdown(socket.SHUT_WR)

    def _received(self, connection: socket.socket) -> Visit:
        raw = b""
        while b"\r\n\r\n" not in raw:
            piece = connection.recv(65536)
            if not piece:
                raise ConnectionError
            raw += piece
        first, *lines = raw.decode("latin-1").split("\r\n\r\n")[0].split("\r\n")
        path = first.split(" ")[1]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        with self._lock:
            self._seen[path] += 1
            visit = Visit(path, headers, self._seen[path], connection, self.is_over)
            self.visits.append(visit)
        return visit

"""A local model hub: real HTTP for the hub's real client, with tiny files."""

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """Serves repositories by name; a file in `broken` is cut off, `status` is the status of every answer.

    A file in `gated`, named with its repository, is refused to every client.
    """

    daemon_threads = True

    def __init__(self, repositories: Mapping[str, Mapping[str, bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories = repositories
        self.broken: set[str] = set()
        self.gated: set[str] = set()
        self.status = 200
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextlib.contextmanager
def serving(repositories: Mapping[str, Mapping[str, bytes]]) -> Iterator[Hub]:
    """Run a hub during a block."""
    hub = Hub(repositories)
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _answer(self, *, with_body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append(f"{self.command} {path}")
        if self.server.status != 200:
            self._send(self.server.status, b"{}", {}, with_body)
        elif path.startswith("/api/models/"):
            self._describe(path.removeprefix("/api/models/"), with_body)
        else:
            repository, _, rest = path.lstrip("/").partition("/resolve/")
            self._file(repository, rest.partition("/")[2], with_body)

    def _describe(self, path: str, with_body: bool) -> None:
        repository, kind = next(
            (path.partition(f"/{kind}/")[0], kind) for kind in ("revision", "tree", "") if f"/{kind}/" in path
        )
        files = self.server.repositories.get(repository)
        if files is None:
            self._send(404, b'{"error": "Repository not found"}', {"X-Error-Code": "RepoNotFound"}, with_body)
            return
        listed = [
            {"type": "file", "path": name, "size": len(content), "oid": _etag(content)}
            for name, content in files.items()
        ]
        about = {"id": repository, "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}
        self._send(200, json.dumps(listed if kind == "tree" else about).encode(), {}, with_body)

    def _file(self, repository: str, name: str, with_body: bool) -> None:
        if f"{repository}/{name}" in self.server.gated:
            self._send(403, b"", {"X-Error-Code": "GatedRepo"}, with_body)
            return
        content = self.server.repositories.get(repository, {}).get(name)
        if content is None:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}, with_body)
            return
        facts = {"ETag": f'"{_etag(content)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        self._send(200, content, facts, with_body, cut=name in self.server.broken)

    def _send(
        self, status: int, body: bytes, headers: Mapping[str, str], with_body: bool, *, cut: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True


def _etag(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()

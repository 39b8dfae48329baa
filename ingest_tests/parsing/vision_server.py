"""A local vision model: an HTTP server with OpenAI-compatible answers from a script."""

import base64
import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

from PIL import Image


@dataclass(frozen=True)
class Reply:
    """An answer after `seconds`. Status 0 resets the connection instead."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True)
class Asked:
    """A request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def picture(self) -> Image.Image:
        """The page image in the request."""
        url = self.body["messages"][0]["content"][0]["image_url"]["url"]
        return Image.open(BytesIO(base64.b64decode(url.partition("base64,")[2])))


Script = Callable[[int, Asked], Reply]


def said(text: Any, finish_reason: str = "stop") -> Reply:
    """A chat completion with this content."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    return Reply(json.dumps({"id": "1", "object": "chat.completion", "choices": [choice]}).encode())


def refused(status: int, **headers: str) -> Reply:
    """An error with a text that says something else than the status."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(b'{"error": {"message": "503 429 401, says the proxy"}}', status, named)


class VisionServer(ThreadingHTTPServer):
    """Answers the n-th request as the script says."""

    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.asked: list[Asked] = []
        self.lock = threading.Lock()
        self.at_once = 0
        self.most_at_once = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/chat/completions"


@contextlib.contextmanager
def answering(script: Script) -> Iterator[VisionServer]:
    """Run a server during a block."""
    server = VisionServer(script)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: VisionServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        asked = Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(content))
        with self.server.lock:
            number = len(self.server.asked)
            self.server.asked.append(asked)
            self.server.at_once += 1
            self.server.most_at_once = max(self.server.most_at_once, self.server.at_once)
        reply = self.server.script(number, asked)
        time.sleep(reply.seconds)
        with self.server.lock:
            self.server.at_once -= 1
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a client after its timeout
            self._send(reply)

    def _send(self, reply: Reply) -> None:
        if reply.status == 0:
            # Closing with "linger 0" sends a reset, like a killed server.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""

"""Connections that can be broken off from another thread, so that nobody waits for a server at the end."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

import httpx

_OPENED = ("connect_tcp.complete", "start_tls.complete")


class Connections:
    """The network streams of a client, as they were opened."""

    def __init__(self) -> None:
        self._streams: WeakSet[Any] = WeakSet()

    @contextmanager
    def posting(self, client: httpx.Client, url: str, content: bytes) -> Iterator[httpx.Response]:
        """The answer to a POST of JSON, its body still to be read."""
        with client.stream(
            "POST",
            url,
            content=content,
            headers={"Content-Type": "application/json"},
            extensions={"trace": self._note},
        ) as response:
            yield response

    def break_off(self) -> None:
        """Whoever reads or writes now meets a broken connection."""
        for stream in list(self._streams):
            opened = stream.get_extra_info("socket")
            if opened is not None:
                with suppress(OSError):  # closed by the other side, or handed on to TLS
                    opened.shutdown(socket.SHUT_RDWR)

    def _note(self, event: str, details: dict[str, Any]) -> None:
        if event.endswith(_OPENED):
            self._streams.add(details["return_value"])

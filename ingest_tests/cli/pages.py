"""A small web site for the commands of the queue, and what a command needs to visit it."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ingest_tests.intake.fetch.site import Site, Visit

# The loopback may be visited, politeness costs no time, and a failed page is tried again after a second.
WEB = {
    "INGEST_FETCH__ALLOW_PRIVATE": "true",
    "INGEST_FETCH__POLITENESS_DELAY_S": "0",
    "INGEST_QUEUE__RETRY_BACKOFF_SECONDS": "1",
    "INGEST_QUEUE__JITTER_SECONDS": "0",
}


def note(name: str) -> bytes:
    """A Markdown document that no other is equal to."""
    return f"# {name}\n\nWhat every beekeeper should know of {name} is written down here.\n".encode()


def put_note(site: Site, name: str) -> str:
    """A page that is always there."""
    return site.page(f"/{name}.md", lambda visit: serve_note(visit, name))


def serve_note(visit: Visit, name: str) -> None:
    """The note of a name."""
    visit.reply(200, note(name), content_type="text/markdown")


def write_list(folder: Path, *artifacts: dict[str, Any]) -> Path:
    """A list of artifacts."""
    file = folder / "list.jsonl"
    file.write_text("".join(json.dumps(artifact) + "\n" for artifact in artifacts), encoding="utf-8")
    return file


class Crowd:
    """How many are inside at the same time, and how many were at most."""

    def __init__(self) -> None:
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def inside(self, seconds: float) -> Iterator[None]:
        """Stay for a while, seen by the others."""
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(seconds)
        try:
            yield
        finally:
            with self._lock:
                self._now -= 1

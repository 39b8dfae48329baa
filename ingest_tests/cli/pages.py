"""A small web site for the queue commands, and the settings with which a command can fetch from it."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ingest_tests.intake.fetch.site import Site, Visit

# Loopback is allowed, there is no pause between requests, and a failed page is retried after a second.
WEB = {
    "INGEST_FETCH__ALLOW_PRIVATE": "true",
    "INGEST_FETCH__POLITENESS_DELAY_S": "0",
    "INGEST_QUEUE__RETRY_BACKOFF_SECONDS": "1",
    "INGEST_QUEUE__JITTER_SECONDS": "0",
}


def note(name: str) -> bytes:
    """Return a Markdown document with unique text."""
    return f"# {name}\n\nWhat every beekeeper should know of {name} is written down here.\n".encode()


def put_note(site: Site, name: str) -> str:
    """Serve a page that always exists."""
    return site.page(f"/{name}.md", lambda visit: serve_note(visit, name))


def serve_note(visit: Visit, name: str) -> None:
    """Return the note with this name."""
    visit.reply(200, note(name), content_type="text/markdown")


def write_list(folder: Path, *artifacts: dict[str, Any]) -> Path:
    """Write a list of artifacts."""
    file = folder / "list.jsonl"
    file.write_text("".join(json.dumps(artifact) + "\n" for artifact in artifacts), encoding="utf-8")
    return file


class Crowd:
    """Counts how many callers are inside at the same time, and the maximum."""

    def __init__(self) -> None:
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def inside(self, seconds: float) -> Iterator[None]:
        """Stay for a while, so that others can be counted."""
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(seconds)
        try:
            yield
        finally:
            with self._lock:
                self._now -= 1

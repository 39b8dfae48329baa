"""A site, a store, a fetcher that can use the loopback, and a clock that tests set."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpcore
import pytest

from ingest_assets.core.layout import Layout
from ingest_assets.intake.fetch import Clock, Fetched, Fetcher, FetchError, Network, NotModified
from ingest_assets.parsing.media import media_type
from ingest_assets.settings.intake import FetchOptions
from ingest_assets.storage.blobs import ContentStore
from ingest_tests.intake.fetch.site import Site

NOW = 1_714_560_000.0  # 2024-05-01 10:40 UTC


@dataclass
class ManualClock:
    """A clock that only moves when code sleeps or a test sets it."""

    now_s: float = NOW
    sleeps: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now_s += seconds

    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, lambda: self.now_s, self.sleep)


class Switchboard(httpcore.NetworkBackend):
    """Connects every address to the loopback and records which address was requested."""

    def __init__(self) -> None:
        self.dialled: list[str] = []
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(self, host: str, *arguments: Any) -> httpcore.NetworkStream:
        self.dialled.append(host)
        return self._sockets.connect_tcp("127.0.0.1", *arguments)


@dataclass
class Desk:
    """Creates fetchers in one home. By default the loopback is allowed and there are no pauses."""

    home: Path
    hands: ManualClock = field(default_factory=ManualClock)

    @property
    def layout(self) -> Layout:
        return Layout(self.home)

    @property
    def store(self) -> ContentStore:
        return ContentStore(self.layout)

    def fetcher(self, network: Network | None = None, clock: Clock | None = None, **options: Any) -> Fetcher:
        """A fetcher with the real clock."""
        easy = {"allow_private": True, "politeness_delay_s": 0, "idle_timeout_s": 5, "total_timeout_s": 20}
        return Fetcher(self.store, FetchOptions(**(easy | options)), media_type, network=network, clock=clock)

    def fetch(self, url: str, **options: Any) -> Fetched:
        """Fetch and expect a document."""
        came = self.fetcher(**options).fetch(url)
        assert isinstance(came, Fetched)
        return came

    def failure(self, url: str, **options: Any) -> FetchError:
        """Fetch and expect an error."""
        with pytest.raises(FetchError) as caught:
            self.fetcher(**options).fetch(url)
        assert "\n" not in str(caught.value)
        return caught.value

    def blobs(self) -> list[Path]:
        """Return every finished file of the store."""
        return sorted(path for path in (self.layout.blobs / "sha256").rglob("*") if path.is_file())

    def partials(self) -> list[Path]:
        """Return every unfinished file."""
        return sorted(self.layout.partials.glob("*"))


def tried(
    fetcher: Fetcher, url: str, attempts: int = 3
) -> tuple[Fetched | NotModified | None, list[FetchError]]:
    """Retry like a queue: while the error is retryable and attempts are left."""
    errors: list[FetchError] = []
    while len(errors) < attempts:
        try:
            return fetcher.fetch(url), errors
        except FetchError as error:
            errors.append(error)
            if not error.retryable:
                break
    return None, errors


@pytest.fixture
def site() -> Iterator[Site]:
    """A site without pages."""
    with Site().open() as site:
        yield site


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty home."""
    return Desk(tmp_path / "home")

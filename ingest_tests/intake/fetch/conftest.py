"""A site, a store, a fetcher that may visit the loopback, and a clock that the tests turn."""

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
class Hands:
    """A clock that only moves when somebody sleeps or turns it."""

    now_s: float = NOW
    sleeps: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now_s += seconds

    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, lambda: self.now_s, self.sleep)


class Switchboard(httpcore.NetworkBackend):
    """Connects every address to the loopback, and writes down which was dialled."""

    def __init__(self) -> None:
        self.dialled: list[str] = []
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(self, host: str, *arguments: Any) -> httpcore.NetworkStream:
        self.dialled.append(host)
        return self._sockets.connect_tcp("127.0.0.1", *arguments)


@dataclass
class Desk:
    """Makes fetchers on one home. The loopback is allowed and nobody waits, unless a test says otherwise."""

    home: Path
    hands: Hands = field(default_factory=Hands)

    @property
    def layout(self) -> Layout:
        return Layout(self.home)

    @property
    def store(self) -> ContentStore:
        return ContentStore(self.layout)

    def fetcher(self, network: Network | None = None, clock: Clock | None = None, **options: Any) -> Fetcher:
        """A fetcher on the real clock."""
        easy = {"allow_private": True, "politeness_delay_s": 0, "idle_timeout_s": 5, "total_timeout_s": 20}
        return Fetcher(self.store, FetchOptions(**(easy | options)), media_type, network=network, clock=clock)

    def fetch(self, url: str, **options: Any) -> Fetched:
        """One fetch that must bring a document."""
        came = self.fetcher(**options).fetch(url)
        assert isinstance(came, Fetched)
        return came

    def failure(self, url: str, **options: Any) -> FetchError:
        """One fetch that must fail."""
        with pytest.raises(FetchError) as caught:
            self.fetcher(**options).fetch(url)
        assert "\n" not in str(caught.value)
        return caught.value

    def blobs(self) -> list[Path]:
        """Every finished file of the store."""
        return sorted(path for path in (self.layout.blobs / "sha256").rglob("*") if path.is_file())

    def partials(self) -> list[Path]:
        """Everything that is not finished."""
        return sorted(self.layout.partials.glob("*"))


def tried(
    fetcher: Fetcher, url: str, attempts: int = 3
) -> tuple[Fetched | NotModified | None, list[FetchError]]:
    """What a queue does: again while the error says so and attempts are left."""
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

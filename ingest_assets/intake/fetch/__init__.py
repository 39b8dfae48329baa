"""Documents from the web: one polite, bounded, resumable attempt at a URL, into a content-addressed store."""

from ingest_assets.intake.fetch.addresses import checked_url, host_of, shown
from ingest_assets.intake.fetch.clock import Clock
from ingest_assets.intake.fetch.errors import FetchError
from ingest_assets.intake.fetch.fetcher import Fetched, Fetcher, NotModified
from ingest_assets.intake.fetch.headers import Validators
from ingest_assets.intake.fetch.network import Network

__all__ = [
    "Clock",
    "FetchError",
    "Fetched",
    "Fetcher",
    "Network",
    "NotModified",
    "Validators",
    "checked_url",
    "host_of",
    "shown",
]

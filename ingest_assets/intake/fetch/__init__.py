"""Download documents: one polite, bounded, resumable attempt at a URL, into a content-addressed store.

`fetch.py` makes the attempt and `exchange.py` its requests; `addresses.py` and `network.py` limit which
addresses are connected to, `hosts.py` how often. `decoding.py` decompresses bodies, `sniffing.py` detects
media types, and `errors.py` defines the errors.
"""

from ingest_assets.intake.fetch.addresses import checked_url, shown
from ingest_assets.intake.fetch.errors import FetchError
from ingest_assets.intake.fetch.fetch import Fetched, Fetcher, NotModified, Validators
from ingest_assets.intake.fetch.network import Clock, Network

__all__ = [
    "Clock",
    "FetchError",
    "Fetched",
    "Fetcher",
    "Network",
    "NotModified",
    "Validators",
    "checked_url",
    "shown",
]

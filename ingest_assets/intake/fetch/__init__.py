"""Documents from the web: one polite, bounded, resumable attempt at a URL, into a content-addressed store.

`fetch.py` makes the attempt, `exchange.py` its requests, `addresses.py` and `network.py` say which addresses
may be asked, `hosts.py` how often. `decoding.py` unpacks a body, `sniffing.py` tells what it is, `errors.py`
why it did not work.
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

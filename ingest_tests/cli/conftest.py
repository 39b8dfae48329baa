"""A web site to fetch from."""

from collections.abc import Iterator

import pytest

from ingest_tests.intake.fetch.site import Site


@pytest.fixture
def site() -> Iterator[Site]:
    """A site without pages."""
    with Site().open() as site:
        yield site

"""The backends under test."""

import pytest

from ingest_assets.backends import InlineBackend, ProcessBackend, ThreadBackend
from ingest_assets.backends.ray import RayBackend, connect, disconnect
from ingest_assets.core.ports import ExecutionBackend

RAY = pytest.param("ray", marks=pytest.mark.slow)


@pytest.fixture(scope="package")
def _end_of_ray():
    yield
    disconnect()


@pytest.fixture
def cluster(_end_of_ray):
    """A Ray cluster on this machine, shared by all tests that do not stop it."""
    connect("")


@pytest.fixture(params=["threads", "processes", RAY])
def backend(request):
    """Two workers of each kind."""
    opened = _open(request)
    yield opened
    opened.close(0)


@pytest.fixture(params=["inline", "threads", "processes", RAY])
def any_backend(request):
    """Every kind, with two workers if possible."""
    opened = _open(request)
    yield opened
    opened.close(0)


@pytest.fixture(params=["processes", pytest.param("ray", marks=pytest.mark.chaos)])
def killable(request):
    """Two workers of each kind that can be killed."""
    opened = _open(request)
    yield opened
    opened.close(0)


def _open(request: pytest.FixtureRequest) -> ExecutionBackend:
    if request.param == "inline":
        return InlineBackend()
    if request.param == "threads":
        return ThreadBackend(2)
    if request.param == "processes":
        return ProcessBackend(2)
    request.getfixturevalue("cluster")
    return RayBackend(
        2, ["ingest_tests.runner.workers"], num_cpus=0
    )  # so that imports do not count as time of items

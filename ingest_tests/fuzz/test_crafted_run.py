"""The crafted files through the whole product: each file in a worker, killed where necessary."""

import pytest

from ingest_tests.fuzz.observing import Observed, Surroundings, observe
from ingest_tests.parsing.hostile.crafted import CRAFTED

MAX_WORKER_MEBIBYTES = 2560

pytestmark = pytest.mark.fuzz


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """One run over all of them."""
    around = Surroundings(tmp_path_factory.mktemp("crafted"))
    for crafted in CRAFTED:
        (around.documents / crafted.name).write_bytes(crafted.content())
    return observe(around, timeout_s=60, max_worker_mebibytes=MAX_WORKER_MEBIBYTES)


def test_each_file_ends_with_its_code(observed: Observed) -> None:
    """The same as from a reader directly."""
    assert (observed.exit_code, "Traceback" in observed.errors) == (1, False), observed.errors[-4000:]
    assert observed.endings == {crafted.name: crafted.code for crafted in CRAFTED}


def test_none_needs_more_memory_than_a_worker_has(observed: Observed) -> None:
    """They are refused before they expand."""
    assert observed.peak_worker_mebibytes < MAX_WORKER_MEBIBYTES


def test_nothing_is_written_outside_the_home(observed: Observed) -> None:
    """Even from archives with paths outside the folder."""
    assert observed.written_elsewhere == []

"""Two thousand broken files of every format end as rows or with error codes, without side effects.

`FUZZ_FILES` and `FUZZ_SEED` set number and seed; `python -m ingest_tests.fuzz` prints a report.
"""

import os
import re
from pathlib import Path

import pytest

from ingest_tests.fuzz.files import write_files
from ingest_tests.fuzz.mutations import SHARES
from ingest_tests.fuzz.observing import Observed, Surroundings, observe

FILES = int(os.environ.get("FUZZ_FILES", "2000"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
TIMEOUT_S = 60.0
MAX_WORKER_MEBIBYTES = 3072
USEFUL = re.compile(r"E_(SECURITY|PARSE|OCR|TIMEOUT|RESOURCE|WORKER)(_[A-Z]+)*")

pytestmark = pytest.mark.fuzz


@pytest.fixture(scope="module")
def around(tmp_path_factory: pytest.TempPathFactory) -> Surroundings:
    """A separate folder with the files."""
    made = Surroundings(tmp_path_factory.mktemp("fuzz"))
    write_files(made.documents, FILES, SEED)
    return made


@pytest.fixture(scope="module")
def observed(around: Surroundings) -> Observed:
    """One run over all of them."""
    return observe(around, TIMEOUT_S, MAX_WORKER_MEBIBYTES)


def test_the_run_ends_as_runs_with_failures_do(observed: Observed) -> None:
    """No file stops it, and none is missing."""
    assert (observed.exit_code, "Traceback" in observed.errors) == (1, False), observed.errors[-4000:]
    assert len(observed.endings) == FILES


def test_every_file_ends_in_success_or_with_a_known_code(observed: Observed) -> None:
    """No library error reaches a user unclassified."""
    nameless = {name: code for name, code in observed.endings.items() if not _is_useful(code)}

    assert nameless == {}
    assert all(message and "\n" not in message for message in observed.messages.values())


def _is_useful(code: str) -> bool:
    return code == "ok" or USEFUL.fullmatch(code) is not None


def test_every_file_ends_within_the_timeout(observed: Observed) -> None:
    """Others are killed and have the code of it."""
    killed = {"E_TIMEOUT", "E_RESOURCE_MEMORY", "E_WORKER_DIED"}
    ended = {name for name, code in observed.endings.items() if code not in killed}

    assert {name: observed.durations[name] for name in ended if observed.durations[name] > TIMEOUT_S} == {}


def test_no_worker_exceeds_its_memory_limit(observed: Observed) -> None:
    """Except for what it allocates between two measurements."""
    assert observed.peak_worker_mebibytes < MAX_WORKER_MEBIBYTES + 512


def test_nothing_is_written_outside_the_home(observed: Observed) -> None:
    """Not to the user's folder, the temporary one, the working one or beside the documents."""
    assert observed.written_elsewhere == []


def test_files_of_every_format_are_among_them(around: Surroundings, observed: Observed) -> None:
    """And most formats have readable files: not all mutations are fatal."""
    formats = {name.split("-")[1].split(".")[0] for name in observed.endings}
    read = {name.split("-")[1].split(".")[0] for name, code in observed.endings.items() if code == "ok"}

    assert formats == set(SHARES)
    assert {"pdf", "docx", "pptx", "xlsx", "html", "md", "csv", "epub", "eml", "tex", "nxml"} <= read
    assert len(list(Path(around.documents).iterdir())) == FILES

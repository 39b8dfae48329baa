"""With `features.require_parity`, more than one worker needs a parity record."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ingest_assets.app.execution import (
    ParityRecord,
    RunOptions,
    check_run_options,
    code_version,
    current_conditions,
    read_record,
    resolve_execution,
    write_record,
)
from ingest_assets.app.home import Home, open_home
from ingest_assets.core.errors import ConfigError
from ingest_tests.conftest import Command
from ingest_tests.runs import run_batches

REQUIRED = "[features]\nrequire_parity = true\n"
TWO = RunOptions(workers=2)
Change = Callable[[ParityRecord], ParityRecord]


@pytest.fixture
def strict(tmp_path: Path) -> Home:
    """A home that requires a parity record."""
    (tmp_path / "ingest.toml").write_text(REQUIRED, encoding="utf-8")
    return open_home(tmp_path)


def record_of(home: Home) -> ParityRecord:
    """Return a record for the current state of this home, of threads and processes."""
    return ParityRecord(
        conditions=current_conditions(home),
        workers={"inline": [1], "threads": [1], "processes": [1, 2]},
        tables={"chunks/2024-05-01-0001": "0" * 64},
        input="/samples",
        documents=15,
        made_at="2024-05-01T12:00:00+00:00",
    )


def refusal(home: Home, config: RunOptions = TWO, stage: str = "doctags") -> str:
    """Return the error of a stage, which is the same before the run and at its start."""
    with pytest.raises(ConfigError) as early:
        check_run_options(home, [stage], config)
    with pytest.raises(ConfigError) as late:
        resolve_execution(home, stage, config)
    assert str(early.value) == str(late.value)
    return str(early.value)


def _other(**changes: object) -> Change:
    return lambda record: record.model_copy(
        update={"conditions": record.conditions.model_copy(update=changes)}
    )


def test_without_a_record_the_line_says_what_why_and_which_command(strict: Home) -> None:
    """Enough to continue without reading the documentation."""
    assert refusal(strict) == (
        "stages.doctags: 2 workers on processes are not allowed, because features.require_parity is on and "
        f"there is no parity record. Run `ingest validate --home {strict.layout.home}`, or use one worker."
    )


def test_no_record_is_needed_without_the_feature(tmp_path: Path) -> None:
    """It is off by default."""
    home = open_home(tmp_path)

    check_run_options(home, ["doctags"], TWO)

    assert resolve_execution(home, "doctags", TWO).workers == 2


@pytest.mark.parametrize("config", [RunOptions(workers=1), RunOptions(run_on="inline", workers=4)])
def test_one_worker_needs_no_proof(strict: Home, config: RunOptions) -> None:
    """The others are compared with it."""
    check_run_options(strict, ["doctags"], config)

    assert resolve_execution(strict, "doctags", config).workers == 1


def test_a_record_of_the_current_home_is_accepted(strict: Home) -> None:
    """Also after it was written to disk and read."""
    write_record(strict, record_of(strict))

    check_run_options(strict, ["doctags"], TWO)

    assert resolve_execution(strict, "doctags", TWO).workers == 2
    assert read_record(strict) == record_of(strict)


@pytest.mark.parametrize(
    ("change", "gap"),
    [
        (_other(code_version="0.0.9+abc"), "is from another version of the code"),
        (_other(configuration_hash="other"), "is from other settings"),
        (_other(versions={"docling": "1.0"}), "is from beautifulsoup4 absent, and "),
        (lambda record: record.model_copy(update={"workers": {"inline": [1]}}), "does not cover processes"),
        (
            lambda record: record.model_copy(update={"workers": {"processes": [1]}}),
            "does not cover processes with more than one worker",
        ),
    ],
    ids=["code", "settings", "libraries", "kind", "one worker"],
)
def test_a_record_of_something_else_is_no_proof(strict: Home, change: Change, gap: str) -> None:
    """The line names the difference."""
    write_record(strict, change(record_of(strict)))

    assert f"the parity record {gap}" in refusal(strict)


@pytest.mark.parametrize("content", ["", "{}", "[1, 2", '{"documents": 3}'])
def test_a_damaged_record_counts_as_none(strict: Home, content: str) -> None:
    """Another validation replaces it."""
    write_record(strict, record_of(strict))
    strict.layout.parity_record.write_text(content)

    assert read_record(strict) is None
    assert "there is no parity record" in refusal(strict)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (RunOptions(backend="ray"), "several workers on ray"),
        (RunOptions(backend="ray", workers=3), "3 workers on ray"),
    ],
)
def test_ray_counts_as_several_workers_without_a_connection(
    strict: Home, config: RunOptions, words: str
) -> None:
    """No cluster is started to find out."""
    with pytest.raises(ConfigError) as raised:
        check_run_options(strict, ["doctags"], config)

    assert f"stages.doctags: {words} are not allowed" in str(raised.value)


def test_one_worker_on_ray_needs_no_proof(tmp_path: Path) -> None:
    """By number or by cap."""
    (tmp_path / "ingest.toml").write_text(f"{REQUIRED}[execution]\nbackend = 'ray'\nmax_workers = 1\n")

    check_run_options(open_home(tmp_path), ["doctags"], RunOptions())
    check_run_options(open_home(tmp_path), ["doctags"], RunOptions(workers=1))


def test_without_parallelism_there_is_nothing_to_prove(tmp_path: Path) -> None:
    """One worker everywhere."""
    (tmp_path / "ingest.toml").write_text(f"{REQUIRED}parallel = false\n")

    check_run_options(open_home(tmp_path), ["doctags"], TWO)

    assert resolve_execution(open_home(tmp_path), "doctags", TWO).workers == 1


def test_a_command_is_refused_before_anything_is_scanned(ingest: Command, notes: Path) -> None:
    """Exit code 2, one line, and the folder is not in the ledger."""
    (ingest.home / "ingest.toml").write_text(REQUIRED, encoding="utf-8")

    done = ingest("all", "--input", notes, "--workers", 2, check=2)

    assert done.stderr.startswith("ingest: stages.documents: 2 workers on threads are not allowed, because")
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (ingest.home / "state" / "ledger.sqlite").exists()


def test_a_step_under_dagster_fails_with_the_same_line(strict: Home, notes: Path) -> None:
    """For runs of the daemon and the web UI."""
    strict.watch(notes)
    strict.scan()

    report = run_batches(strict, ["documents"], {"workers": 2}, reason="test")

    assert list(report.broken.values()) == [refusal(strict, stage="documents")]


def test_the_code_version_names_the_release_and_hashes_the_sources() -> None:
    """A changed line changes the version."""
    release, _, digest = code_version().partition("+")

    assert release[0].isdigit()
    assert len(digest) == 64

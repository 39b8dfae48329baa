"""More than one worker only after a proof, where the settings ask for one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ingest_assets.app.execution import (
    ParityRecord,
    RunOptions,
    circumstances_of,
    code_version,
    execution_of,
    read_record,
    refuse_early,
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
    """A home that asks for a proof."""
    (tmp_path / "ingest.toml").write_text(REQUIRED, encoding="utf-8")
    return open_home(tmp_path)


def record_of(home: Home) -> ParityRecord:
    """A proof for this home as it is, of threads and processes."""
    return ParityRecord(
        circumstances=circumstances_of(home),
        workers={"inline": [1], "threads": [1], "processes": [1, 2]},
        tables={"chunks/2024-05-01-0001": "0" * 64},
        input="/samples",
        documents=15,
        made_at="2024-05-01T12:00:00+00:00",
    )


def refusal(home: Home, config: RunOptions = TWO, stage: str = "doctags") -> str:
    """The line with which a stage is refused, early and when it starts alike."""
    with pytest.raises(ConfigError) as early:
        refuse_early(home, [stage], config)
    with pytest.raises(ConfigError) as late:
        execution_of(home, stage, config)
    assert str(early.value) == str(late.value)
    return str(early.value)


def _other(**changes: object) -> Change:
    return lambda record: record.model_copy(
        update={"circumstances": record.circumstances.model_copy(update=changes)}
    )


def test_without_a_record_the_line_says_what_why_and_which_command(strict: Home) -> None:
    """Enough to go on without reading any documentation."""
    assert refusal(strict) == (
        "stages.doctags: 2 workers on processes are refused, because features.require_parity is on and there "
        f"is no parity record; make one with `ingest validate --home {strict.layout.home}`, "
        "or use one worker."
    )


def test_nobody_is_asked_for_a_record_without_the_feature(tmp_path: Path) -> None:
    """It is off by default."""
    home = open_home(tmp_path)

    refuse_early(home, ["doctags"], TWO)

    assert execution_of(home, "doctags", TWO).workers == 2


@pytest.mark.parametrize("config", [RunOptions(workers=1), RunOptions(run_on="inline", workers=4)])
def test_one_worker_needs_no_proof(strict: Home, config: RunOptions) -> None:
    """It is what the others are compared with."""
    refuse_early(strict, ["doctags"], config)

    assert execution_of(strict, "doctags", config).workers == 1


def test_a_record_of_this_home_as_it_is_opens_the_way(strict: Home) -> None:
    """And survives on disk."""
    write_record(strict, record_of(strict))

    refuse_early(strict, ["doctags"], TWO)

    assert execution_of(strict, "doctags", TWO).workers == 2
    assert read_record(strict) == record_of(strict)


@pytest.mark.parametrize(
    ("change", "gap"),
    [
        (_other(code_version="0.0.9+abc"), "was made by another version of the code"),
        (_other(configuration_hash="other"), "was made with other settings"),
        (_other(versions={"docling": "1.0"}), "was made with beautifulsoup4 absent, and here is "),
        (lambda record: record.model_copy(update={"workers": {"inline": [1]}}), "does not cover processes"),
        (
            lambda record: record.model_copy(update={"workers": {"processes": [1]}}),
            "does not cover processes with more than one worker",
        ),
    ],
    ids=["code", "settings", "libraries", "kind", "one worker"],
)
def test_a_record_of_something_else_is_no_proof(strict: Home, change: Change, gap: str) -> None:
    """The line says what is different."""
    write_record(strict, change(record_of(strict)))

    assert f"the parity record {gap}" in refusal(strict)


@pytest.mark.parametrize("content", ["", "{}", "[1, 2", '{"documents": 3}'])
def test_a_damaged_record_counts_as_none(strict: Home, content: str) -> None:
    """Validating again replaces it."""
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
def test_ray_counts_as_several_before_the_cluster_is_asked(
    strict: Home, config: RunOptions, words: str
) -> None:
    """Nothing is started to find out."""
    with pytest.raises(ConfigError) as raised:
        refuse_early(strict, ["doctags"], config)

    assert f"stages.doctags: {words} are refused" in str(raised.value)


def test_one_worker_on_ray_needs_no_proof(tmp_path: Path) -> None:
    """By number or by cap."""
    (tmp_path / "ingest.toml").write_text(f"{REQUIRED}[execution]\nbackend = 'ray'\nmax_workers = 1\n")

    refuse_early(open_home(tmp_path), ["doctags"], RunOptions())
    refuse_early(open_home(tmp_path), ["doctags"], RunOptions(workers=1))


def test_without_parallelism_there_is_nothing_to_prove(tmp_path: Path) -> None:
    """One worker everywhere."""
    (tmp_path / "ingest.toml").write_text(f"{REQUIRED}parallel = false\n")

    refuse_early(open_home(tmp_path), ["doctags"], TWO)

    assert execution_of(open_home(tmp_path), "doctags", TWO).workers == 1


def test_a_command_is_refused_before_anything_is_scanned(ingest: Command, notes: Path) -> None:
    """Exit code 2, one line, no trace of the folder in the home."""
    (ingest.home / "ingest.toml").write_text(REQUIRED, encoding="utf-8")

    done = ingest("all", "--input", notes, "--workers", 2, check=2)

    assert done.stderr.startswith("ingest: stages.documents: 2 workers on threads are refused, because")
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (ingest.home / "state" / "ledger.sqlite").exists()


def test_a_step_under_dagster_fails_with_the_same_line(strict: Home, notes: Path) -> None:
    """The daemon and the web UI come this way."""
    strict.watch(notes)
    strict.scan()

    report = run_batches(strict, ["documents"], {"workers": 2}, reason="test")

    assert list(report.broken.values()) == [refusal(strict, stage="documents")]


def test_the_code_version_names_the_release_and_hashes_the_sources() -> None:
    """A changed line makes another version."""
    release, _, digest = code_version().partition("+")

    assert release[0].isdigit()
    assert len(digest) == 64

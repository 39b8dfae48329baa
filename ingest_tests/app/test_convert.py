"""`convert` reads documents without a home: one result per path, in order, and a bad file fails alone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ingest_assets import Converted, convert
from ingest_assets.backends import InlineBackend, ProcessBackend
from ingest_assets.backends.ray import RayBackend, connect, disconnect
from ingest_assets.core.errors import ConfigError, StageError
from ingest_assets.core.ports import ExecutionBackend
from ingest_assets.settings.parsing import ParsingOptions
from ingest_tests.conftest import clean_environment

RAY = pytest.param("ray", marks=pytest.mark.slow)
PRELOAD = ("ingest_tests.app.faulty_reader",)


@pytest.fixture
def notes(tmp_path: Path) -> list[Path]:
    """Six notes; every other one is a web page."""
    paths = []
    for number in range(6):
        text = f"# Note {number}\n\nHive {number} has {number + 3} frames of brood.\n"
        if number % 2:
            text = f"<html><body><h1>Note {number}</h1><p>Hive {number} is strong.</p></body></html>"
        path = tmp_path / f"note-{number}.{'html' if number % 2 else 'md'}"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def code_of(result: Converted) -> str:
    """Return the code of a failure; empty if the file was read."""
    return "" if result.error is None else result.error.code


@pytest.mark.parametrize("backend", ["inline", "threads", "processes", RAY])
def test_every_path_has_its_result_in_order(notes, backend):
    """The same on every backend, with a missing file in the middle."""
    paths = [*notes[:3], notes[0].parent / "missing.md", *notes[3:]]

    results = list(convert(paths, backend=backend, workers=2))

    assert [result.path for result in results] == paths
    assert [result.ok for result in results] == [True] * 3 + [False] + [True] * 3
    assert [result.parsed for result in results] == [
        result.parsed for result in convert(paths, backend="inline")
    ]
    assert results[0].markdown.startswith("# Note 0")
    assert results[1].document.texts[0].text == "Note 1"
    assert isinstance(results[3].error, StageError)
    assert (results[3].error.code, results[3].error.stage) == ("E_DOCUMENT_MISSING", "convert")
    with pytest.raises(ValueError, match="was not read"):
        _ = results[3].markdown


@pytest.fixture(params=["processes", pytest.param("ray", marks=pytest.mark.chaos)])
def faulty(request: pytest.FixtureRequest) -> Iterator[ExecutionBackend]:
    """Two workers whose parser hangs on `hang*` and crashes on `crash*`."""
    if request.param == "processes":
        with ProcessBackend(2, PRELOAD) as opened:
            yield opened
        return
    connect("")
    with RayBackend(2, PRELOAD, num_cpus=0) as opened:
        yield opened
    disconnect()


def test_a_hanging_and_a_crashing_file_do_not_affect_others(faulty, notes):
    """The first is killed at its time limit; the error of the second names the signal."""
    bad = [notes[0].parent / "hang.md", notes[0].parent / "crash.md"]
    for path in bad:
        path.write_text("# Bad\n\nA file like any other.\n", encoding="utf-8")
    paths = [bad[0], *notes[:3], bad[1], *notes[3:]]

    results = {result.path: result for result in convert(paths, backend=faulty, timeout_s=20)}

    assert list(results) == paths
    assert (code_of(results[bad[0]]), code_of(results[bad[1]])) == ("E_TIMEOUT", "E_WORKER_DIED")
    assert "SIGSEGV" in results[bad[1]].error.message
    assert all(results[path].ok for path in notes)


def test_unreadable_paths_fail_with_a_code(tmp_path):
    """A folder, a pipe without a writer, a damaged file, and an unsupported format."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "cut.pdf").write_bytes(b"%PDF-1.7\ncut")
    (tmp_path / "tool.exe").write_bytes(b"MZ\x90\x00\x03\x00\x00\x00\x00")

    results = convert(sorted(tmp_path.iterdir()), backend="inline")

    assert {result.path.name: code_of(result) for result in results} == {
        "cut.pdf": "E_PARSE_CORRUPT",
        "folder": "E_NOT_A_FILE",
        "pipe.md": "E_NOT_A_FILE",
        "tool.exe": "E_PARSE_UNSUPPORTED",
    }


def test_paths_are_taken_as_results_are_read(notes):
    """A folder of a million files is listed only as far as workers need it."""
    taken = []

    def names() -> Iterator[str]:
        for number in range(1000):
            taken.append(number)
            yield str(notes[0])

    results = convert(names(), backend="threads", workers=2)
    next(results)
    assert len(taken) < 20
    results.close()


def test_one_path_can_be_passed_without_a_list(notes):
    """A string is a path, not a list of letters."""
    (result,) = convert(str(notes[0]), backend="inline")

    assert result.ok


def test_parsing_settings_can_be_passed(notes):
    """They are those of `[parsing]`."""
    tight = ParsingOptions(max_mebibytes=1)
    notes[0].write_bytes(b"word " * 300_000)

    (result,) = convert(notes[0], backend="inline", parsing=tight)

    assert code_of(result) == "E_SECURITY_TOO_LARGE"


def test_an_open_backend_stays_open(notes):
    """Its workers are warm for the next call."""
    with InlineBackend() as backend:
        assert len(list(convert(notes, backend=backend))) == len(notes)
        assert backend.get_result(backend.submit(partial(str, 3))) == "3"


def test_an_unknown_backend_is_reported_at_the_call(notes):
    """Not when the first result is read."""
    with pytest.raises(ConfigError, match="expected inline, threads, processes, ray or a backend"):
        convert(notes, backend="processs")  # type: ignore[arg-type]


def test_a_script_without_the_guard_is_told_about_it(notes):
    """Worker processes import the script; without the guard they would start workers of their own."""
    script = notes[0].parent / "script.py"
    script.write_text(
        f"from ingest_assets import convert\nfor r in convert({str(notes[0])!r}): print(r.ok)\n"
    )

    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, env=clean_environment()
    )

    assert done.stdout == "False\n"
    assert done.stderr.rstrip().endswith('must be below `if __name__ == "__main__":`')


def test_importing_the_package_loads_nothing():
    """Every command and every worker imports it at startup."""
    code = "import ingest_assets, sys; print(sorted({'pydantic', 'polars', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=clean_environment()
    )

    assert done.stdout.strip() == "[]"

"""`ingest validate` proves that tables are byte-equal, and names the differences."""

import json
import os
import re
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ingest_assets.app.execution import ParityConditions
from ingest_assets.app.home import open_home
from ingest_assets.app.validate import INLINE, Variant, VariantResult, scan_input
from ingest_assets.cli import validate as validating
from ingest_assets.cli.main import run
from ingest_assets.core.errors import IngestError
from ingest_assets.core.identity import code_version
from ingest_assets.core.layout import Layout
from ingest_assets.stages.dense import DenseStage
from ingest_assets.stages.doctags import DoctagsStage
from ingest_assets.storage.locks import FileLock
from ingest_tests.conftest import Command

pytestmark = pytest.mark.graph  # runs the whole graph many times

THREADS = ("--only", "inline,threads", "--workers", "1,2")
ASSETS = ["documents", "doctags", "admission", "chunks", "embeddings/dense", "embeddings/lexical"]


@pytest.fixture
def folder(notes: Path) -> Path:
    """Three notes and an unreadable document."""
    (notes / "broken.pdf").write_bytes(b"%PDF-1.7\ncut off")
    return notes


def _flip_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Change one bit of the first vector of one document, on threads and not inline."""
    honest = DenseStage.rows

    def rows(self: DenseStage, item, context) -> pa.Table:
        table = honest(self, item, context)
        if threading.current_thread() is threading.main_thread() or "varroa" not in item.item_id:
            return table
        vectors = np.stack(table["vector"].to_pylist()).astype(np.float32)
        vectors.view(np.int32)[0, 5] ^= 1
        column = pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1])
        return table.set_column(3, "vector", column).cast(table.schema)

    monkeypatch.setattr(DenseStage, "rows", rows)


def test_equal_tables_are_recorded_and_nothing_is_left_behind(ingest: Command, folder: Path):
    """Failures are compared too, and the home is not changed."""
    left_over = Layout(ingest.home).parity_home("threads-2")
    left_over.mkdir(parents=True)
    (left_over / "half.parquet").write_bytes(b"an interrupted validation")

    result = ingest.json("validate", "--input", folder, *THREADS)

    assert [(run["backend"], run["workers"], run["status"]) for run in result["runs"]] == [
        ("inline", 1, "base"),
        ("threads", 1, "equal"),
        ("threads", 2, "equal"),
    ]
    assert {(run["done"], run["failed"]) for run in result["runs"]} == {(3, 1)}
    assert result["runs"][0]["tables"] == result["runs"][2]["tables"]
    assert [table.rpartition("/")[0] for table in result["runs"][0]["tables"]] == ASSETS
    record = json.loads(Path(result["record"]).read_text())
    assert record["workers"] == {"inline": [1], "threads": [1, 2]}
    assert record["tables"] == result["runs"][0]["tables"]
    assert (record["documents"], record["input"]) == (4, str(folder))
    assert record["conditions"]["configuration_hash"] == result["configuration_hash"]
    assert sorted(path.name for path in Layout(ingest.home).parity.iterdir()) == [
        "record.json",
        "validate.lock",
    ]
    assert [path.name for path in ingest.home.iterdir()] == ["state"]


def test_one_different_bit_is_named_and_removes_the_record(
    ingest: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Asset, batch, row and column; the tables are kept for inspection."""
    layout = Layout(ingest.home)
    layout.parity.mkdir(parents=True)
    layout.parity_record.write_text("{}")
    _flip_on_threads(monkeypatch)

    done = ingest("validate", "--input", folder, "--only", "threads", "--workers", "2", check=1)

    (line,) = [line for line in done.stderr.splitlines() if line.startswith("threads 2: different: ")]
    assert re.fullmatch(
        r"threads 2: different: embeddings/dense \d{4}-\d\d-\d\d-0001: row 3, column vector\[5\]: "
        r"\S+ expected, \S+ found",
        line,
    )
    assert "1 of 1 runs differ from the inline run" in done.stdout
    assert f"its tables are in {layout.parity_home('threads-2')}" in done.stderr
    for name in ("inline-1", "threads-2"):
        assert list((layout.parity_home(name) / "data/embeddings/dense").glob("*.parquet"))
    assert not layout.parity_record.exists()


def test_the_plan_is_printed_first_and_the_result_last(
    ingest: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Ray, which is not installed, is in the table but not among the compared runs."""
    chosen = [INLINE, Variant("threads", 2), Variant("ray", 2, is_installed=False)]
    monkeypatch.setattr(validating, "choose_variants", lambda *_: chosen)

    done = ingest("validate", "--input", folder)

    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"4 documents of {folder}; numbers of workers: inline 1; threads 2; ray 2.")
    assert lines[1].startswith("2 runs from documents to vectors, each in an empty home below ")
    assert re.search(r"^ray +2 +0\.0 +0 +0 +not installed *$", done.stdout, flags=re.MULTILINE)
    assert re.search(r"^threads +2 +\d+\.\d +3 +1 +equal *$", done.stdout, flags=re.MULTILINE)
    assert lines[-1].startswith(
        "All 2 runs wrote the same 6 tables, byte for byte; ray is not installed and "
    )


def test_a_failure_is_compared_whatever_the_budget(ingest: Command, folder: Path):
    """The samples, one of which fails, can be validated with a budget of zero."""
    ingest("validate", "--input", folder, *THREADS, INGEST_STAGES__DOCTAGS__ERROR_BUDGET="0")

    assert Layout(ingest.home).parity_record.exists()


def test_a_run_that_stops_is_no_proof(ingest: Command, folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Without a complete inline run there is nothing to compare with."""
    monkeypatch.setattr(DoctagsStage, "candidates", _no_plan)
    done = ingest("validate", "--input", folder, *THREADS, check=1)

    assert "inline 1: not complete: batch " in done.stderr
    assert done.stdout.splitlines()[-1] == (
        "The inline run is not complete, so there is nothing to compare with; fix its errors."
    )
    assert not Layout(ingest.home).parity_record.exists()


def test_documents_that_all_fail_prove_nothing(
    ingest: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Equal failures are equal, but no rows were compared."""
    monkeypatch.setattr(validating, "choose_variants", lambda *_: [INLINE])
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\ncut off")

    done = ingest("validate", "--input", folder, check=1)

    assert done.stdout.splitlines()[-1] == (
        "Every document failed, so nothing was compared; choose documents that can be read."
    )
    assert not Layout(ingest.home).parity_record.exists()


def test_the_environment_names_the_same_home_as_before(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Dagster finds each scratch home by variables, which must be restored afterwards."""
    monkeypatch.setenv("INGEST_HOME", str(tmp_path / "mine"))
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setattr(validating, "choose_variants", lambda *_: [INLINE])

    code = run(["validate", "--input", str(folder), "--home", str(tmp_path / "other")])

    assert code == 0
    assert os.environ["INGEST_HOME"] == str(tmp_path / "mine")
    assert "DAGSTER_HOME" not in os.environ


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--only", "cluster"), "--only: unknown backend 'cluster'"),
        (("--workers", "none"), "--workers: must be numbers from 1 to 256"),
        (("--input", "nowhere"), "nowhere: does not exist"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_created(ingest: Command, arguments, fault: str):
    """In one line."""
    done = ingest("validate", *arguments, check=2)

    assert fault in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(ingest.home.iterdir()) == []


def test_a_folder_without_documents_is_refused(ingest: Command, tmp_path: Path):
    """An empty comparison must not be recorded as a proof."""
    (tmp_path / "empty").mkdir()

    done = ingest("validate", "--input", tmp_path / "empty", check=2)

    assert "contains no documents; choose a folder with documents." in done.stderr


def test_two_validations_of_one_home_do_not_mix(ingest: Command, folder: Path):
    """They would compare each other's tables."""
    lock = FileLock(Layout(ingest.home).parity_lock)
    lock.acquire()

    done = ingest("validate", "--input", folder, *THREADS, check=1)
    lock.release()

    assert "another `ingest validate` is running here" in done.stderr


def test_a_home_inside_the_folder_is_not_taken_for_documents(notes: Path):
    """`--input .` in a project that is its own home."""
    for name in ("data/chunks", "state/parity/runs/threads-2"):
        (notes / name).mkdir(parents=True)
        (notes / name / "old.md").write_text("# Not a document")

    assert scan_input(open_home(notes), notes).new == 3


def test_code_that_changes_during_the_runs_proves_nothing(monkeypatch: pytest.MonkeyPatch):
    """Worker processes would have read the new sources, the command the old ones."""
    then = ParityConditions(code_version=code_version(), configuration_hash="", versions={})
    results = [VariantResult(INLINE, "base", done=3), VariantResult(Variant("threads", 2), "equal", done=3)]
    monkeypatch.setattr(validating, "code_version_on_disk", code_version)
    before = validating._objection(results, then)

    monkeypatch.setattr(validating, "code_version_on_disk", lambda: "0.1.0+other")

    assert before is None
    assert str(validating._objection(results, then)).startswith("The code changed on disk during the runs")


def _no_plan(*_: object) -> None:
    raise IngestError("the disk is gone")

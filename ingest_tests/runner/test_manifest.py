"""The manifest has complete lines, with any number of writers and after crashes."""

import json
import multiprocessing

import pytest

from ingest_assets.backends import ProcessBackend, ThreadBackend
from ingest_assets.core.items import WorkItem
from ingest_assets.runner import Manifest, ManifestRow, RunSpec, read_manifest, read_newest, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.fakes import plan_from, plan_of, satisfied
from ingest_tests.runner.workers import by_name


def row(item_id: str, **changes: object) -> ManifestRow:
    """Return a small row."""
    values = {
        "stage": "s",
        "status": "done",
        "attempt_no": 1,
        "run_id": "r",
        "fingerprint": "f",
        "cfg_hash": "c",
    }
    return ManifestRow(**{**values, "item_id": item_id, "finished_at": "2024-01-01T00:00:00Z", **changes})


def test_a_stage_writes_a_row_for_each_item(tmp_path):
    """A success has counts and times, a failure its error."""
    manifest = Manifest(tmp_path / "state" / "manifest.jsonl")
    plan = plan_from([WorkItem("ok-0", "f0", cfg_hash="c"), WorkItem("fail-1", "f1")])
    run_stage(
        RunSpec(plan, by_name, StageOptions(), backend=ThreadBackend(1), manifest=manifest, run_id="run-7")
    )

    done, failed = read_manifest(manifest.path)
    assert (done.stage, done.item_id, done.status, done.attempt_no) == ("stage", "ok-0", "done", 1)
    assert (done.run_id, done.fingerprint, done.cfg_hash) == ("run-7", "f0", "c")
    assert done.counts == {"rows": 1, "pages": 2}
    assert set(done.timings) == {"queue_s", "exec_s", "cpu_s"}
    assert done.error is None
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error["code"] == "E_CONTRACT"
    assert failed.error["detail"] == {"item": "fail-1"}


@pytest.mark.parametrize("backend", [ThreadBackend, ProcessBackend])
def test_the_counts_of_a_failed_attempt_are_kept(tmp_path, backend):
    """Tokens of an endpoint are paid even if the document fails."""
    manifest = Manifest(tmp_path / "manifest.jsonl")
    options = StageOptions(retries=1, retry_backoff_s=0.01)
    outcome = run_stage(
        RunSpec(
            plan_from([WorkItem("paying-0", "f")]), by_name, options, backend=backend(1), manifest=manifest
        )
    )

    failed, done = read_manifest(manifest.path)
    assert (failed.status, failed.counts) == ("failed", {"tokens": 5})
    assert (done.status, done.counts) == ("done", {"rows": 1, "tokens": 5})
    assert outcome.counts == {"tokens": 10}


def test_skipped_items_write_nothing(tmp_path):
    """A rerun without work creates no file."""
    manifest = Manifest(tmp_path / "manifest.jsonl")
    run_stage(
        RunSpec(
            plan_from([satisfied("s")]), by_name, StageOptions(), backend=ThreadBackend(1), manifest=manifest
        )
    )

    assert not manifest.path.exists()


def test_an_incomplete_last_line_is_skipped_and_the_next_row_is_read(tmp_path):
    """Power can fail in the middle of a row."""
    path = tmp_path / "manifest.jsonl"
    first = Manifest(path)
    first.append(row("a"))
    first.append(row("b"))
    first.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert [row.item_id for row in read_manifest(path)] == ["a"]

    second = Manifest(path)
    second.append(row("c"))
    second.close()
    assert [row.item_id for row in read_manifest(path)] == ["a", "c"]


def test_rows_of_later_versions_can_be_read(tmp_path):
    """Unknown keys are ignored."""
    path = tmp_path / "manifest.jsonl"
    line = json.loads(row("a").as_line())
    path.write_text(json.dumps({**line, "provider_tags": ["x"]}) + "\n", encoding="utf-8")

    assert [row.item_id for row in read_manifest(path)] == ["a"]


def test_any_item_id_is_written_and_read(tmp_path):
    """Ids can have line breaks, lone surrogates and any script."""
    names = ["a\nb", "zł\u2028ty", "\udcff.pdf", "文書"]
    manifest = Manifest(tmp_path / "manifest.jsonl")
    for name in names:
        manifest.append(row(name))
    manifest.close()

    assert [each.item_id for each in read_manifest(manifest.path)] == names


def test_an_item_with_an_undecodable_name_runs(tmp_path):
    """Its error is readable, and its row has the exact id."""
    manifest = Manifest(tmp_path / "manifest.jsonl")
    items = [WorkItem("fail-\udcff", "f"), WorkItem("ok-\udcff", "f")]
    outcome = run_stage(
        RunSpec(plan_from(items), by_name, StageOptions(), backend=ThreadBackend(1), manifest=manifest)
    )

    assert (outcome.succeeded, outcome.failed) == (1, 1)
    assert outcome.errors[0].message == "fail-\\udcff is no good"
    assert [each.item_id for each in read_manifest(manifest.path)] == ["fail-\udcff", "ok-\udcff"]


def test_processes_that_append_together_never_mix_their_rows(tmp_path):
    """Each row is one write under a lock."""
    path = tmp_path / "manifest.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append_many, args=(path, name)) for name in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=30)

    rows = [row.item_id for row in read_manifest(path)]
    assert len(rows) == 600
    assert [name for name in rows if name.startswith("a")] == [f"a{n}" for n in range(300)]


def test_a_manifest_that_cannot_be_written_is_a_warning(tmp_path):
    """The rows are computed anyway."""
    (tmp_path / "state").write_text("a file where the folder should be", encoding="utf-8")
    manifest = Manifest(tmp_path / "state" / "manifest.jsonl")
    outcome = run_stage(
        RunSpec(plan_of("ok"), by_name, StageOptions(), backend=ThreadBackend(1), manifest=manifest)
    )

    assert outcome.succeeded == 1
    assert any("the manifest raised" in warning for warning in outcome.warnings)


def test_no_manifest_has_no_rows(tmp_path):
    """This is the state before the first run."""
    assert list(read_manifest(tmp_path / "none.jsonl")) == []


def _append_many(path, name):
    manifest = Manifest(path)
    for number in range(300):
        manifest.append(row(f"{name}{number}", counts={"rows": number}))


def test_the_newest_rows_are_read_first_across_blocks(tmp_path):
    """Rows have all lengths, some are longer than a block, and the last is incomplete."""
    path = tmp_path / "manifest.jsonl"
    manifest = Manifest(path)
    for number in range(300):
        manifest.append(row(f"{number}-" + "x" * (number * 37 % 1000)))
    manifest.append(row("long" * 50_000))
    manifest.append(row("last"))
    manifest.close()
    path.write_bytes(path.read_bytes() + b'{"stage": "torn')

    assert list(read_newest(path)) == list(read_manifest(path))[::-1]


def test_the_newest_rows_of_a_long_manifest_cost_little(tmp_path):
    """Only the end of the file is read."""
    path = tmp_path / "manifest.jsonl"
    with path.open("wb") as file:
        file.seek(1 << 34)
        file.write(b"\n" + row("b").as_line() + row("a").as_line())

    rows = read_newest(path)

    assert [next(rows).item_id, next(rows).item_id] == ["a", "b"]


def test_no_manifest_has_no_newest_row(tmp_path):
    """This is the state before the first run."""
    assert list(read_newest(tmp_path / "manifest.jsonl")) == []

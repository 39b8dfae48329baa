"""The backend and the number of workers of a stage, by settings, flags and features."""

from pathlib import Path

import pytest

from ingest_assets.app.execution import RunOptions, check_run_options, resolve_execution
from ingest_assets.app.home import Home, open_home
from ingest_assets.core.errors import ConfigError
from ingest_tests.conftest import Command


def home_with(folder: Path, settings: str) -> Home:
    """A home with these settings."""
    (folder / "ingest.toml").write_text(settings, encoding="utf-8")
    return open_home(folder)


def test_a_stages_execution_settings_override_single_keys(tmp_path):
    """`[execution]` is for all stages, `[stages.doctags.execution]` for one."""
    home = home_with(
        tmp_path,
        '[execution]\nrun_on = "threads"\nmax_workers = 3\n'
        '[stages.doctags]\nworkers = 8\n[stages.doctags.execution]\nrun_on = "processes"\n',
    )
    doctags = resolve_execution(home, "doctags", RunOptions())
    chunks = resolve_execution(home, "chunks", RunOptions())

    assert (doctags.kind, doctags.workers) == ("processes", 3)
    assert doctags.reason == "3 by execution.max_workers, instead of 8 as configured"
    assert (chunks.kind, chunks.options.policy) == ("threads", "cpu")
    assert doctags.options.per_item_timeout_s == 900, "the stage's own defaults stay"


def test_switching_back_to_local_changes_one_setting(tmp_path):
    """All other Ray settings can stay."""
    text = '[execution]\nbackend = "{}"\naddress = "10.0.0.1:6379"\nnum_cpus = 2\n'
    home = home_with(tmp_path, text.format("local"))

    assert resolve_execution(home, "doctags", RunOptions()).kind == "processes"
    assert open_home(tmp_path).options("doctags").execution.address == "10.0.0.1:6379"


def test_run_options_override_the_settings(tmp_path):
    """Those of the launchpad and of flags."""
    home = home_with(tmp_path, '[execution]\nbackend = "ray"\naddress = "10.0.0.1:6379"\n')
    execution = resolve_execution(home, "doctags", RunOptions(backend="local", run_on="inline", workers=4))

    assert (execution.kind, execution.workers) == ("inline", 1)


def test_without_the_parallel_feature_every_stage_has_one_worker(tmp_path):
    """Settings and flags do not change that."""
    home = home_with(tmp_path, "[features]\nparallel = false\n[stages.chunks]\nworkers = 4\n")
    for stage in home.stages:
        execution = resolve_execution(home, stage, RunOptions(workers=8))
        assert execution.workers == 1, stage
    assert resolve_execution(home, "chunks", RunOptions()).reason == "1: features.parallel is off"


def test_ray_client_needs_the_experimental_feature(tmp_path):
    """It must be enabled explicitly."""
    text = '[execution]\nbackend = "ray"\naddress = "ray://10.0.0.1:10001"\n'
    with pytest.raises(ConfigError, match=r"Ray Client.*features.experimental = true"):
        check_run_options(home_with(tmp_path, text), ["doctags"], RunOptions())

    check_run_options(
        home_with(tmp_path, text + "[features]\nexperimental = true\n"), ["doctags"], RunOptions()
    )


def test_a_gpu_stage_on_processes_is_rejected_before_anything_starts(ingest: Command, notes: Path):
    """With one line and exit code 2; the home stays unchanged."""
    done = ingest("all", "--input", notes, "--run-on", "processes", check=2)

    assert "dangerous_gpu_processes = true" in done.stderr
    assert not (ingest.home / "state" / "ledger.sqlite").exists()


def test_experimental_features_can_be_enabled_for_one_command(ingest: Command, notes: Path):
    """With the flag, only the connection fails."""
    (ingest.home / "ingest.toml").write_text(
        '[execution]\nbackend = "ray"\naddress = "ray://127.0.0.1:9"\n', encoding="utf-8"
    )
    refused = ingest("all", "--input", notes, check=2)
    tried = ingest("all", "--input", notes, "--enable-experimental", check=1)

    assert "--enable-experimental" in refused.stderr
    assert "no Ray cluster can be used at 'ray://127.0.0.1:9'" in tried.stderr


def test_an_unknown_execution_setting_is_reported(tmp_path):
    """With the known ones."""
    with pytest.raises(
        ConfigError, match=r"stages.doctags.execution.max_worker: no such setting.*max_workers"
    ):
        home_with(tmp_path, "[stages.doctags.execution]\nmax_worker = 3\n")

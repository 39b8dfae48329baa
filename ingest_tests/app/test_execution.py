"""Where a stage runs and on how many workers, by settings, flags and features."""

from pathlib import Path

import pytest

from ingest_assets.app.execution import RunOptions, execution_of, refuse_early
from ingest_assets.app.home import Home, open_home
from ingest_assets.core.errors import ConfigError
from ingest_tests.conftest import Command


def home_with(folder: Path, settings: str) -> Home:
    """A home with these settings."""
    (folder / "ingest.toml").write_text(settings, encoding="utf-8")
    return open_home(folder)


def test_a_stage_changes_what_it_names_and_keeps_the_rest_of_the_execution_settings(tmp_path):
    """`[execution]` is for all, `[stages.doctags.execution]` for one."""
    home = home_with(
        tmp_path,
        '[execution]\nrun_on = "threads"\nmax_workers = 3\n'
        '[stages.doctags]\nworkers = 8\n[stages.doctags.execution]\nrun_on = "processes"\n',
    )
    doctags = execution_of(home, "doctags", RunOptions())
    chunks = execution_of(home, "chunks", RunOptions())

    assert (doctags.kind, doctags.workers) == ("processes", 3)
    assert doctags.reason == "3 by execution.max_workers, instead of 8 as configured"
    assert (chunks.kind, chunks.options.policy) == ("threads", "cpu")
    assert doctags.options.per_item_timeout_s == 900, "the stage's own defaults stay"


def test_going_back_to_local_is_one_word(tmp_path):
    """Everything else about Ray may stay in the settings."""
    text = '[execution]\nbackend = "{}"\naddress = "10.0.0.1:6379"\nnum_cpus = 2\n'
    home = home_with(tmp_path, text.format("local"))

    assert execution_of(home, "doctags", RunOptions()).kind == "processes"
    assert open_home(tmp_path).options("doctags").execution.address == "10.0.0.1:6379"


def test_a_run_may_say_where_it_runs(tmp_path):
    """The launchpad and the flags win over the settings."""
    home = home_with(tmp_path, '[execution]\nbackend = "ray"\naddress = "10.0.0.1:6379"\n')
    execution = execution_of(home, "doctags", RunOptions(backend="local", run_on="inline", workers=4))

    assert (execution.kind, execution.workers) == ("inline", 1)


def test_without_the_parallel_feature_there_is_one_worker_everywhere(tmp_path):
    """Whatever else is asked for."""
    home = home_with(tmp_path, "[features]\nparallel = false\n[stages.chunks]\nworkers = 4\n")
    for stage in home.stages:
        execution = execution_of(home, stage, RunOptions(workers=8))
        assert execution.workers == 1, stage
    assert execution_of(home, "chunks", RunOptions()).reason == "1: features.parallel is off"


def test_ray_client_needs_the_experimental_feature(tmp_path):
    """What is not proved is asked for by name."""
    text = '[execution]\nbackend = "ray"\naddress = "ray://10.0.0.1:10001"\n'
    with pytest.raises(ConfigError, match=r"Ray Client.*features.experimental = true"):
        refuse_early(home_with(tmp_path, text), ["doctags"], RunOptions())

    refuse_early(home_with(tmp_path, text + "[features]\nexperimental = true\n"), ["doctags"], RunOptions())


def test_a_gpu_stage_on_processes_is_refused_before_anything_starts(ingest: Command, notes: Path):
    """One line, exit code 2, and no trace in the home."""
    done = ingest("all", "--input", notes, "--run-on", "processes", check=2)

    assert "dangerous_gpu_processes = true" in done.stderr
    assert not (ingest.home / "state" / "ledger.sqlite").exists()


def test_experimental_features_can_be_enabled_for_one_command(ingest: Command, notes: Path):
    """The refusal is gone; what is left is that nobody listens there."""
    (ingest.home / "ingest.toml").write_text(
        '[execution]\nbackend = "ray"\naddress = "ray://127.0.0.1:9"\n', encoding="utf-8"
    )
    refused = ingest("all", "--input", notes, check=2)
    tried = ingest("all", "--input", notes, "--enable-experimental", check=1)

    assert "--enable-experimental" in refused.stderr
    assert "no Ray cluster can be used at 'ray://127.0.0.1:9'" in tried.stderr


def test_a_misspelt_execution_setting_is_named(tmp_path):
    """With what is known there."""
    with pytest.raises(
        ConfigError, match=r"stages.doctags.execution.max_worker: no such setting.*max_workers"
    ):
        home_with(tmp_path, "[stages.doctags.execution]\nmax_worker = 3\n")

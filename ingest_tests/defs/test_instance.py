"""The Dagster instance of a home."""

import threading
from concurrent.futures import ThreadPoolExecutor

import dagster as dg

from ingest_assets.app.home import Home
from ingest_assets.defs.instance import apply_pools, open_instance
from ingest_assets.settings.tree import PoolSettings


def test_everything_dagster_stores_is_below_state(home: Home, instance: dg.DagsterInstance):
    """A home is one folder that can be moved, copied or deleted as a whole."""
    assert instance.root_directory == str(home.layout.state)
    assert {path.name for path in home.layout.home.iterdir()} == {"state"}


def test_a_homes_instance_file_wins_and_changes_take_effect(home: Home):
    """Editing dagster.yaml must have an effect."""
    with open_instance(home.layout) as shipped:
        queued = shipped.run_coordinator
    home.layout.instance_file.write_text("telemetry:\n  enabled: false\nrun_retries:\n  enabled: false\n")

    with open_instance(home.layout) as own:
        assert not own.run_retries_enabled
    assert type(queued).__name__ == "QueuedRunCoordinator"


def test_the_shipped_settings_are_those_of_an_unattended_deployment(instance: dg.DagsterInstance):
    """Queue, monitoring, retries only for crashes, no telemetry."""
    assert instance.run_monitoring_enabled
    assert instance.run_retries_enabled
    assert not instance.get_settings("run_retries")["retry_on_asset_or_op_failure"]
    assert not instance.telemetry_enabled
    assert instance.get_settings("retention")


def test_pool_limits_follow_the_settings(instance: dg.DagsterInstance):
    """Raised, lowered, and not written if unchanged."""
    first = apply_pools(instance, PoolSettings())
    again = apply_pools(instance, PoolSettings())
    raised = apply_pools(instance, PoolSettings(doctags=3))

    assert first == PoolSettings().model_dump()
    assert (again, raised) == ({}, {"doctags": 3})
    limits = {info.name: info.limit for info in instance.event_log_storage.get_pool_limits()}
    assert limits["doctags"] == 3


def test_commands_can_start_at_the_same_time_on_a_new_home(home: Home):
    """Dagster creates its files, and adds pools, without locking."""
    together = threading.Barrier(4)

    def apply(_: int) -> dict[str, int]:
        together.wait()
        with open_instance(home.layout) as instance:
            together.wait(timeout=60)
            return apply_pools(instance, PoolSettings())

    with ThreadPoolExecutor(together.parties) as threads:
        list(threads.map(apply, range(together.parties)))

    with open_instance(home.layout) as instance:
        storage = instance.event_log_storage
        slots = {
            pool.name: storage.get_concurrency_info(pool.name).slot_count
            for pool in storage.get_pool_limits()
        }
    assert slots == PoolSettings().model_dump()

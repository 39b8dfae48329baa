"""All paths of a home folder."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import sha256_text


@dataclass(frozen=True, slots=True)
class Layout:
    """The folder tree of `INGEST_HOME`: `data/` contains the results, `state/` everything else."""

    home: Path

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def state(self) -> Path:
        return self.home / "state"

    @property
    def logs(self) -> Path:
        """Output of the servers that `ingest up` starts."""
        return self.state / "logs"

    @property
    def ledger(self) -> Path:
        return self.state / "ledger.sqlite"

    @property
    def cache(self) -> Path:
        """Caches; safe to delete."""
        return self.state / "cache"

    @property
    def settings_file(self) -> Path:
        return self.home / "ingest.toml"

    @property
    def instance_file(self) -> Path:
        """A home's own Dagster instance settings; the packaged ones apply if it does not exist."""
        return self.home / "dagster.yaml"

    @property
    def instance_copy(self) -> Path:
        """The copy that Dagster reads: `state/` is its `DAGSTER_HOME`."""
        return self.state / "dagster.yaml"

    @property
    def instance_lock(self) -> Path:
        return self.state / "instance.lock"

    @property
    def up_lock(self) -> Path:
        return self.state / "up.lock"

    @property
    def parity(self) -> Path:
        """Results of `ingest validate`, and its temporary homes."""
        return self.state / "parity"

    @property
    def parity_record(self) -> Path:
        return self.parity / "record.json"

    @property
    def parity_lock(self) -> Path:
        return self.parity / "validate.lock"

    @property
    def parity_runs(self) -> Path:
        return self.parity / "runs"

    def parity_home(self, name: str) -> Path:
        """The separate home of one run of `ingest validate`."""
        return self.parity_runs / name

    def evaluation_home(self, name: str) -> Path:
        """The separate home of a labelled set."""
        return self.state / "evaluation" / name

    @property
    def evaluation_lock(self) -> Path:
        return self.state / "evaluation.lock"

    def asset_folder(self, asset: str) -> Path:
        return self.data / asset

    def table(self, asset: str, batch: str) -> Path:
        return self.asset_folder(asset) / f"{_file_name(batch)}.parquet"

    def parts(self, asset: str, batch: str) -> Path:
        return self.asset_folder(asset) / ".parts" / _file_name(batch)

    def part(self, asset: str, batch: str, item_id: str) -> Path:
        return self.parts(asset, batch) / f"{sha256_text(item_id)}.parquet"

    def part_paths(self, asset: str, batch: str) -> Callable[[str], str]:
        """Return a function from item id to part path, as strings: `Path` objects are slow for many items."""
        folder = str(self.parts(asset, batch))
        return lambda item_id: f"{folder}{os.sep}{sha256_text(item_id)}.parquet"

    @property
    def blobs(self) -> Path:
        """Fetched files by hash, and partial downloads on the same file system."""
        return self.data / "blobs"

    def blob(self, content_hash: str) -> Path:
        return self.blobs / "sha256" / content_hash[:2] / content_hash

    @property
    def partials(self) -> Path:
        return self.blobs / ".partial"

    def partial(self, key: str) -> Path:
        """The content of an incomplete download, by its key."""
        return self.partials / f"{sha256_text(key)}.part"

    def partial_note(self, key: str) -> Path:
        """The state of a partial download: its flushed size and the conditions for resuming it."""
        return self.partials / f"{sha256_text(key)}.json"

    def lock(self, asset: str, batch: str) -> Path:
        """The lock of a batch's tables; all model sets of a family share it, so it survives a switch."""
        return self.state / "locks" / asset.partition("@")[0] / f"{_file_name(batch)}.lock"

    def family_lock(self, asset: str) -> Path:
        """The lock of a family: writers of its tables share it, a cut-over takes it exclusively."""
        return self.state / "locks" / f"{asset.partition('@')[0]}.lock"

    def claim_lock(self, asset: str) -> Path:
        """The lock held while a model set is assigned its folder."""
        return self.state / "locks" / f"{asset.partition('@')[0]}.claim.lock"

    def set_state(self, asset: str) -> Path:
        """The file that names the model set of a folder's tables."""
        return self.asset_folder(asset) / ".set.json"

    def set_change(self, asset: str) -> Path:
        """The file that records a cut-over in progress."""
        folder = self.asset_folder(asset)
        return folder.with_name(f".{folder.name}.change.json")

    def manifest(self, stage: str) -> Path:
        return self.state / "manifests" / f"{stage}.jsonl"

    def quarantine(self, asset: str, batch: str) -> Path:
        return self.state / "quarantine" / asset / _file_name(batch)


def _file_name(batch: str) -> str:
    """Return the batch; raise `ConfigError` for one that, as a file name, would lead to another folder."""
    if batch in ("", ".", "..") or "/" in batch or "\0" in batch:
        raise ConfigError(f"{batch!r} is not the name of a batch. `ingest status` lists the batches.")
    return batch

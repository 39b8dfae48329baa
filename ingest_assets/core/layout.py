"""Every path of a home folder is built here, and nowhere else."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ingest_assets.core.identity import sha256_text


@dataclass(frozen=True, slots=True)
class Layout:
    """The folder tree below `INGEST_HOME`: `data/` is the product, `state/` what is known about it."""

    home: Path

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def state(self) -> Path:
        return self.home / "state"

    @property
    def logs(self) -> Path:
        """What the servers of `ingest up` print."""
        return self.state / "logs"

    @property
    def ledger(self) -> Path:
        return self.state / "ledger.sqlite"

    @property
    def cache(self) -> Path:
        """What need not be computed again, and may be lost."""
        return self.state / "cache"

    @property
    def settings_file(self) -> Path:
        return self.home / "ingest.toml"

    @property
    def instance_file(self) -> Path:
        """A home's own settings of the Dagster instance; without them the shipped ones hold."""
        return self.home / "dagster.yaml"

    @property
    def instance_copy(self) -> Path:
        """What Dagster reads: `state/` is its `DAGSTER_HOME`, so that all it stores is there."""
        return self.state / "dagster.yaml"

    @property
    def instance_lock(self) -> Path:
        return self.state / "instance.lock"

    @property
    def up_lock(self) -> Path:
        return self.state / "up.lock"

    @property
    def parity(self) -> Path:
        """What `ingest validate` has proved, and the homes it tries things in."""
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
        """A home of its own, with data and state, for one run that is compared with others."""
        return self.parity_runs / name

    def evaluation_home(self, name: str) -> Path:
        """A home of its own, with data and state, for a labelled set."""
        return self.state / "evaluation" / name

    @property
    def evaluation_lock(self) -> Path:
        return self.state / "evaluation.lock"

    def asset_folder(self, asset: str) -> Path:
        return self.data / asset

    def table(self, asset: str, batch: str) -> Path:
        return self.asset_folder(asset) / f"{batch}.parquet"

    def parts(self, asset: str, batch: str) -> Path:
        return self.asset_folder(asset) / ".parts" / batch

    def part(self, asset: str, batch: str, item_id: str) -> Path:
        return self.parts(asset, batch) / f"{sha256_text(item_id)}.parquet"

    def part_paths(self, asset: str, batch: str) -> Callable[[str], str]:
        """The same for every item of a batch, as texts: paths are dear to build one by one."""
        folder = str(self.parts(asset, batch))
        return lambda item_id: f"{folder}{os.sep}{sha256_text(item_id)}.parquet"

    @property
    def blobs(self) -> Path:
        """Fetched bytes by their hash, and beside them what is still on its way: one file system for both."""
        return self.data / "blobs"

    def blob(self, content_hash: str) -> Path:
        return self.blobs / "sha256" / content_hash[:2] / content_hash

    @property
    def partials(self) -> Path:
        return self.blobs / ".partial"

    def partial(self, key: str) -> Path:
        """The bytes of a download that is not complete, found again by what it is a download of."""
        return self.partials / f"{sha256_text(key)}.part"

    def partial_note(self, key: str) -> Path:
        """What is known of a partial file: how much of it is safe, and when it may be continued."""
        return self.partials / f"{sha256_text(key)}.json"

    def lock(self, asset: str, batch: str) -> Path:
        """One for a batch's tables in all sets of a family, so that it outlives their changing places."""
        return self.state / "locks" / asset.partition("@")[0] / f"{batch}.lock"

    def family_lock(self, asset: str) -> Path:
        """Shared by those who write tables of a family; who lets sets change places holds it alone."""
        return self.state / "locks" / f"{asset.partition('@')[0]}.lock"

    def claim_lock(self, asset: str) -> Path:
        """Held for the moment in which a set is given its place."""
        return self.state / "locks" / f"{asset.partition('@')[0]}.claim.lock"

    def set_mark(self, asset: str) -> Path:
        """Of which set the tables of a folder are."""
        return self.asset_folder(asset) / ".set.json"

    def set_change(self, asset: str) -> Path:
        """That two sets of a family are about to change places."""
        folder = self.asset_folder(asset)
        return folder.with_name(f".{folder.name}.change.json")

    def manifest(self, stage: str) -> Path:
        return self.state / "manifests" / f"{stage}.jsonl"

    def quarantine(self, asset: str, batch: str) -> Path:
        return self.state / "quarantine" / asset / batch

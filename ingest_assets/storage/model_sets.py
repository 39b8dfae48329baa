"""Model sets of an embedding family: the active set is stored at the family's own path, others next to it.

A set is all tables made with one configuration. `embeddings/dense` is always the active set; another one is
built, or kept, in `embeddings/dense@<set>`. Writers share the family's lock; callers of `cut_over`, `recover`
and `remove_all_but` hold it exclusively. After a crash between any two steps, `recover` completes the switch.
"""

import ctypes
import errno
import json
import os
import shutil
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.core.errors import TableDamaged
from ingest_assets.core.identity import canonical_json
from ingest_assets.core.layout import Layout
from ingest_assets.core.schemas import TableSpec
from ingest_assets.storage.atomic import flush, replacing, sweep_scratch
from ingest_assets.storage.locks import FileLock
from ingest_assets.storage.parquet import detect_damage, read_footer
from ingest_assets.storage.table import Parts, Table, rewrite

# Swap two folders atomically, where the system supports it. Python has no function for it; the numbers are
# those of linux/fcntl.h and linux/fs.h.
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NOT_SUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EXDEV}


def exchange(first: Path, second: Path) -> bool:
    """Swap two paths atomically; False if the system does not support it."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    if call(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_SUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(first), None, str(second))


UNKNOWN = "unknown"  # tables from before there were sets, or of several sets


@dataclass(frozen=True, slots=True)
class SetState:
    """The set and model of a folder's tables; `previous` is the set that they replaced."""

    set: str
    model: str = ""
    previous: str = ""

    @property
    def name(self) -> str:
        """The model's name, or the set if there is none."""
        return self.model or f"set {self.set}"

    def distinct_name(self, other: "SetState") -> str:
        """The name, with the set if `other` is a different set of the same name."""
        is_alike = self.name == other.name and self.set != other.set
        return f"{self.name} set {self.set}" if is_alike else self.name


@dataclass(frozen=True, slots=True)
class Family:
    """The stored sets of one family. `asset` is the asset of the active set."""

    layout: Layout
    asset: str

    def current(self) -> SetState | None:
        """Return the set at the family's own path, even without rows; None if there is none."""
        return read_set_state(self.layout.set_state(self.asset)) or _state_of_tables(self._folder())

    def has_rows(self) -> bool:
        """True if the active set has rows. A table that cannot be read counts as one with rows."""
        return any(_may_have_rows(path) for path in self._folder().glob("*.parquet"))

    def serving(self) -> SetState | None:
        """Return the active set if it has rows."""
        return self.current() if self.has_rows() else None

    def asset_of(self, set_id: str) -> str:
        """Return the asset of this set: the family's own if the set is active or there is no active set."""
        current = self.current()
        return self.asset if current is None or current.set == set_id else f"{self.asset}@{set_id}"

    def other_sets(self) -> list[str]:
        """Return the sets that are not active."""
        folder = self._folder()
        return sorted(path.name.partition("@")[2] for path in folder.parent.glob(f"{folder.name}@*"))

    def assets_with(self, batch: str) -> list[str]:
        """Return the assets, active or not, that have a table of this batch."""
        assets = [self.asset, *(f"{self.asset}@{set_id}" for set_id in self.other_sets())]
        return [asset for asset in assets if self.layout.table(asset, batch).exists()]

    def claim(self, state: SetState) -> str:
        """Return the asset to write this set to; if there is no set yet, it becomes the active one."""
        lock = FileLock(self.layout.claim_lock(self.asset))
        lock.acquire()
        try:
            asset = self.asset_of(state.set)
            if read_set_state(self.layout.set_state(asset)) is None:
                _write(self.layout.set_state(asset), state)
            return asset
        finally:
            lock.release()

    def cut_over(self, state: SetState) -> None:
        """Make a set active, even if it has no tables yet. Of the other sets, keep only the previous one."""
        old = self.current() or SetState(UNKNOWN)
        _write(self.layout.set_state(f"{self.asset}@{state.set}"), replace(state, previous=old.set))
        shutil.rmtree(self._folder(old.set), ignore_errors=True)  # a leftover, not the active set
        with replacing(self.layout.set_change(self.asset)) as scratch:
            scratch.write_text(canonical_json({"new": state.set, "old": old.set}), encoding="utf-8")
        active, new = self._folder(), self._folder(state.set)
        if not exchange(active, new):
            _rename(active, self._folder(old.set))
            _rename(new, active)
        self._finish(state.set, old.set)

    def is_interrupted(self) -> bool:
        """True if a process was killed during a switch."""
        return self.layout.set_change(self.asset).exists()

    def recover(self) -> None:
        """Complete an interrupted switch, or discard it if no folder was moved."""
        note = self.layout.set_change(self.asset)
        if not note.exists():
            return
        switch, current = json.loads(note.read_text(encoding="utf-8")), self.current()
        if current is None or current.set == switch["new"]:
            self._finish(switch["new"], switch["old"])
        else:
            note.unlink()

    def modified_at(self, set_id: str) -> float:
        """Return when a set that is not active was last modified, in seconds since 1970."""
        return self._folder(set_id).stat().st_mtime

    def remove_all_but(self, kept: Collection[str]) -> list[str]:
        """Remove the sets that are neither active nor in `kept`; return them."""
        removed = [set_id for set_id in self.other_sets() if set_id not in kept]
        for set_id in removed:
            shutil.rmtree(self._folder(set_id), ignore_errors=True)
        return removed

    def _finish(self, new: str, old: str) -> None:
        active, new_folder, old_folder = self._folder(), self._folder(new), self._folder(old)
        if not active.exists() and new_folder.exists():  # killed between two renames
            _rename(new_folder, active)
        if new_folder.exists() and not old_folder.exists():  # it has the old set after an exchange
            _rename(new_folder, old_folder)
        flush(active.parent)
        self.remove_all_but({old} - {UNKNOWN})
        self.layout.set_change(self.asset).unlink()

    def _folder(self, set_id: str = "") -> Path:
        return self.layout.asset_folder(f"{self.asset}@{set_id}" if set_id else self.asset)


def read_set_state(path: Path) -> SetState | None:
    """Read a folder's state file; None if it is missing or invalid."""
    try:
        return SetState(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def read_table_set(path: Path) -> SetState | None:
    """Read a table's set from its footer; None if the file cannot be read."""
    try:
        metadata = pq.read_metadata(path).metadata or {}
    except (pa.ArrowInvalid, OSError):
        return None
    name, model = (metadata.get(f"ingest.{key}".encode(), b"").decode() for key in ("set", "model_id"))
    return SetState(name or UNKNOWN, model)


def _state_of_tables(folder: Path) -> SetState | None:
    """Return the set named in all tables of a folder, for a folder without a state file."""
    common: SetState | None = None
    for path in folder.glob("*.parquet"):
        state = read_table_set(path)
        if common is not None and state is not None and state.set != common.set:
            return SetState(UNKNOWN, "several models")
        common = common or state
        if common is not None and common.set == UNKNOWN:
            return common
    return common


def _may_have_rows(path: Path) -> bool:
    try:
        return bool(pq.read_metadata(path).num_rows)
    except (pa.ArrowInvalid, OSError):
        return True


def _write(path: Path, state: SetState) -> None:
    with replacing(path) as scratch:
        scratch.write_text(canonical_json(asdict(state)), encoding="utf-8")


def _rename(source: Path, target: Path) -> None:
    source.replace(target)
    flush(target.parent)


# Remove documents from tables that no stage rewrites: those of sets that are not being built.


def prune(layout: Layout, spec: TableSpec, batch: str, chunks: Table, *, serves: bool = False) -> list[str]:
    """Remove documents without chunks, and staged parts, from a set's table; return the documents.

    Also remove documents that are chunked differently now, unless the set still serves: until the new set is
    complete, old vectors are better than none. A damaged file is removed. The caller holds the table's lock.
    """
    path = layout.table(spec.asset, batch)
    sweep_scratch(path)
    Parts(layout, spec, batch).clear()
    footer = read_footer(path)
    if footer is None:
        path.unlink(missing_ok=True)
        return []
    try:
        stale = (footer.items.keys() | footer.failures.keys()) - chunks.records.keys()
        if not serves:
            stale |= _rechunked_documents(path, chunks)
        if stale:
            items = {item: record for item, record in footer.items.items() if item not in stale}
            failures = {item: failure for item, failure in footer.failures.items() if item not in stale}
            rewrite(path, spec, footer, replace(footer, items=items, failures=failures))
    except TableDamaged as damaged:
        if damaged.path != path:
            raise
        path.unlink(missing_ok=True)
        return list(footer.items)
    return [item for item in footer.items if item in stale]


def _rechunked_documents(path: Path, chunks: Table) -> set[str]:
    """Return the documents with a row whose chunk no longer exists: a search result without text."""
    with detect_damage(path):
        rows = pl.DataFrame(pq.ParquetFile(path).read(columns=["chunk_id", "doc_id"]))
    current = chunks.read(lambda rows: rows.select("chunk_id"))
    return set(rows.join(current, on="chunk_id", how="anti")["doc_id"])

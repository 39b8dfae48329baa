"""Sets of an embedding family: one is whole and serves at the family's own path, others rest beside it.

A set is all tables made with one configuration. `embeddings/dense` is always the set that serves; another
one is made, or kept, in `embeddings/dense@<set>`. Writers share the family's lock; who calls `cut_over`,
`recover` or `remove_all_but` holds it alone. Killed between any two steps, the next one goes on from there.
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
from ingest_assets.storage.parquet import naming_damage, read_footer
from ingest_assets.storage.table import Parts, Table, rewrite

# Two folders that change places in one step, where the system can. Python has no call for it: the numbers are
# those of linux/fcntl.h and linux/fs.h.
_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EXDEV}


def exchange(one: Path, other: Path) -> bool:
    """Let two names change places, so that each is there at any moment; False where that cannot be done."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    if call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))


UNKNOWN = "unknown"  # tables from before there were sets, or of several


@dataclass(frozen=True, slots=True)
class SetMark:
    """What a folder's tables were made with; `previous` is the set whose place they took."""

    set: str
    model: str = ""
    previous: str = ""

    @property
    def name(self) -> str:
        """For people: the model, or else the set."""
        return self.model or f"set {self.set}"

    def name_beside(self, other: "SetMark") -> str:
        """The name, and the set too where another one goes by the same name."""
        is_alike = self.name == other.name and self.set != other.set
        return f"{self.name} set {self.set}" if is_alike else self.name


@dataclass(frozen=True, slots=True)
class Family:
    """The sets of one family, as files. `asset` is the family's own."""

    layout: Layout
    asset: str

    def current(self) -> SetMark | None:
        """The set that has the serving place, be it without rows; None when there is no mark and no table."""
        return read_mark(self.layout.set_mark(self.asset)) or _mark_of_tables(self._folder())

    def has_rows(self) -> bool:
        """True when readers of the serving place may find something.

        A table that cannot be understood counts as one with rows: nobody knows what its loss would cost.
        """
        return any(_may_have_rows(path) for path in self._folder().glob("*.parquet"))

    def served(self) -> SetMark | None:
        """The set that readers find rows of."""
        return self.current() if self.has_rows() else None

    def place(self, set_id: str) -> str:
        """The asset whose tables hold this set: the family's own when it serves, or when none does."""
        current = self.current()
        return self.asset if current is None or current.set == set_id else f"{self.asset}@{set_id}"

    def beside(self) -> list[str]:
        """The sets that do not serve."""
        folder = self._folder()
        return sorted(path.name.partition("@")[2] for path in folder.parent.glob(f"{folder.name}@*"))

    def tables_of(self, batch: str) -> list[str]:
        """The assets, of the set that serves and of all others, that have a table of this batch."""
        assets = [self.asset, *(f"{self.asset}@{each}" for each in self.beside())]
        return [asset for asset in assets if self.layout.table(asset, batch).exists()]

    def claim(self, mark: SetMark) -> str:
        """The asset to write this set to; of several who find no set there, the first one has the place."""
        lock = FileLock(self.layout.claim_lock(self.asset))
        lock.acquire()
        try:
            place = self.place(mark.set)
            if read_mark(self.layout.set_mark(place)) is None:
                _write(self.layout.set_mark(place), mark)
            return place
        finally:
            lock.release()

    def cut_over(self, mark: SetMark) -> None:
        """Let a set serve, be it not begun yet, and keep the one before it, alone of all others."""
        old = self.current() or SetMark(UNKNOWN)
        _write(self.layout.set_mark(f"{self.asset}@{mark.set}"), replace(mark, previous=old.set))
        shutil.rmtree(self._folder(old.set), ignore_errors=True)  # it serves: nothing there is of use
        with replacing(self.layout.set_change(self.asset)) as scratch:
            scratch.write_text(canonical_json({"new": mark.set, "old": old.set}), encoding="utf-8")
        here, new = self._folder(), self._folder(mark.set)
        if not exchange(here, new):
            _rename(here, self._folder(old.set))
            _rename(new, here)
        self._finish(mark.set, old.set)

    def is_torn(self) -> bool:
        """True when somebody was killed while sets changed places."""
        return self.layout.set_change(self.asset).exists()

    def recover(self) -> None:
        """Go on with a change that was begun, or forget one that was not."""
        note = self.layout.set_change(self.asset)
        if not note.exists():
            return
        said, current = json.loads(note.read_text(encoding="utf-8")), self.current()
        if current is None or current.set == said["new"]:
            self._finish(said["new"], said["old"])
        else:
            note.unlink()

    def touched_at(self, set_id: str) -> float:
        """When a table or the mark of a set that does not serve was written last."""
        return self._folder(set_id).stat().st_mtime

    def remove_all_but(self, kept: Collection[str]) -> list[str]:
        """Remove the sets that neither serve nor are kept; gives which."""
        gone = [each for each in self.beside() if each not in kept]
        for each in gone:
            shutil.rmtree(self._folder(each), ignore_errors=True)
        return gone

    def _finish(self, new: str, old: str) -> None:
        here, freed, kept = self._folder(), self._folder(new), self._folder(old)
        if not here.exists() and freed.exists():  # killed between two renames
            _rename(freed, here)
        if freed.exists() and not kept.exists():  # what it changed places with
            _rename(freed, kept)
        flush(here.parent)
        self.remove_all_but({old} - {UNKNOWN})
        self.layout.set_change(self.asset).unlink()

    def _folder(self, set_id: str = "") -> Path:
        return self.layout.asset_folder(f"{self.asset}@{set_id}" if set_id else self.asset)


def read_mark(path: Path) -> SetMark | None:
    """What a folder's mark says; None when there is none that can be understood."""
    try:
        return SetMark(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def set_of(path: Path) -> SetMark | None:
    """The set that a table says it is of; None for a file that cannot be read."""
    try:
        said = pq.read_metadata(path).metadata or {}
    except (pa.ArrowInvalid, OSError):
        return None
    name, model = (said.get(f"ingest.{key}".encode(), b"").decode() for key in ("set", "model_id"))
    return SetMark(name or UNKNOWN, model)


def _mark_of_tables(folder: Path) -> SetMark | None:
    """For a folder without a mark: the set that all its tables agree on."""
    found: SetMark | None = None
    for path in folder.glob("*.parquet"):
        mark = set_of(path)
        if found is not None and mark is not None and mark.set != found.set:
            return SetMark(UNKNOWN, "several models")
        found = found or mark
        if found is not None and found.set == UNKNOWN:
            return found
    return found


def _may_have_rows(path: Path) -> bool:
    try:
        return bool(pq.read_metadata(path).num_rows)
    except (pa.ArrowInvalid, OSError):
        return True


def _write(path: Path, mark: SetMark) -> None:
    with replacing(path) as scratch:
        scratch.write_text(canonical_json(asdict(mark)), encoding="utf-8")


def _rename(source: Path, target: Path) -> None:
    source.replace(target)
    flush(target.parent)


# Taking documents out of a table that nobody makes again: other sets of a family hold only what is there.


def prune(layout: Layout, spec: TableSpec, batch: str, chunks: Table, *, serves: bool = False) -> list[str]:
    """Remove from a set's table each document that is not chunked any more; gives which.

    Also those that are cut in another way now, unless the set still serves: until the new one is whole, old
    vectors are better than none. Staged parts go too. A file with nothing to remove stays as it is, one that
    is damaged is removed: it is derived. The caller holds the table's lock.
    """
    path = layout.table(spec.asset, batch)
    sweep_scratch(path)
    Parts(layout, spec, batch).clear()
    footer = read_footer(path)
    if footer is None:
        path.unlink(missing_ok=True)
        return []
    try:
        gone = (footer.items.keys() | footer.failures.keys()) - chunks.records.keys()
        if not serves:
            gone |= _not_chunked_so(path, chunks)
        if gone:
            items = {item: record for item, record in footer.items.items() if item not in gone}
            failures = {item: failure for item, failure in footer.failures.items() if item not in gone}
            rewrite(path, spec, footer, replace(footer, items=items, failures=failures))
    except TableDamaged as damaged:
        if damaged.path != path:
            raise
        path.unlink(missing_ok=True)
        return list(footer.items)
    return [item for item in footer.items if item in gone]


def _not_chunked_so(path: Path, chunks: Table) -> set[str]:
    """Documents with a row whose chunk is not there: whoever finds it would find it in vain."""
    with naming_damage(path):
        rows = pl.DataFrame(pq.ParquetFile(path).read(columns=["chunk_id", "doc_id"]))
    there = chunks.read(lambda rows: rows.select("chunk_id"))
    return set(rows.join(there, on="chunk_id", how="anti")["doc_id"])

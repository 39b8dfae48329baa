"""Rows that are stored under another id: what only moved need not be made again."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ingest_assets.model.errors import TableDamaged
from ingest_assets.storage.footer import Footer
from ingest_assets.storage.merging import row_offsets
from ingest_assets.storage.parquet import RowReader


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Where a table holds an item's rows."""

    path: str
    item_id: str
    start: int
    rows: int

    def read(self) -> pa.Table | None:
        """The rows; None when they cannot be read or are not that item's."""
        try:
            reader = RowReader(Path(self.path))
            try:
                found = reader.read(self.start, self.rows)
            finally:
                reader.close()
        except (TableDamaged, OSError):
            return None
        is_whole = found.num_rows == self.rows and set(found["doc_id"].to_pylist()) == {self.item_id}
        return found if is_whole else None


def stored_by_fingerprint(path: Path, stored: Footer | None) -> Mapping[str, StoredRows]:
    """Of every fingerprint in a table the first rows that have it; they differ from others in names only."""
    if stored is None:
        return {}
    starts = row_offsets(stored.items)
    found: dict[str, StoredRows] = {}
    for item_id, record in stored.items.items():
        if record.rows:
            place = StoredRows(str(path), item_id, starts[item_id], record.rows)
            found.setdefault(record.fingerprint, place)
    return found

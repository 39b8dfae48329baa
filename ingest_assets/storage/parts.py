"""Staged parts: each finished item rests on disk at once, so that a crash costs only what was running."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.model.items import Record
from ingest_assets.model.schemas import TableSpec
from ingest_assets.storage.footer import Footer, read_footer
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.parquet import write_parquet


class Parts:
    """The parts of one table and batch that wait to be committed."""

    def __init__(self, layout: Layout, spec: TableSpec, batch: str) -> None:
        self._layout = layout
        self._spec = spec
        self._batch = batch
        self._folder = layout.parts(spec.asset, batch)

    def write(self, item_id: str, fingerprint: str, rows: pa.Table) -> Path:
        """Persist one item's rows atomically. The disk may take its time: the next item need not wait."""
        path = self.path(item_id)
        footer = Footer("", "", {item_id: Record(fingerprint, rows.num_rows)})
        write_parquet(path, self._spec, [rows], footer.as_metadata(), waits=False)
        return path

    def path(self, item_id: str) -> Path:
        return self._layout.part(self._spec.asset, self._batch, item_id)

    def read(self, item_id: str) -> pa.Table:
        """The rows of one part."""
        return pq.ParquetFile(self.path(item_id)).read()

    def records(self) -> dict[str, Record]:
        """What is staged, by item. A damaged part counts as absent: its item is simply done again."""
        records: dict[str, Record] = {}
        for path in self._files():
            footer = read_footer(path, often=False)
            if footer is not None:
                records.update(footer.items)
        return records

    def clear(self) -> None:
        """Remove every part; call it once their rows are committed."""
        if self._folder.is_dir():
            shutil.rmtree(self._folder)

    def _files(self) -> Iterator[Path]:
        if self._folder.is_dir():
            yield from sorted(self._folder.glob("*.parquet"))

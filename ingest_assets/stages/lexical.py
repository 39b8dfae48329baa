"""Chunks become term counts. An item is a document; its rows are its chunks' terms."""

import functools
import threading
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from ingest_assets.embedders.languages import STEMMED
from ingest_assets.embedders.lexical import count_terms
from ingest_assets.embedders.terms import Analysis, analysis_for, uses_language
from ingest_assets.model.embedding import LexicalOptions
from ingest_assets.model.errors import ConfigError
from ingest_assets.model.identity import canonical_json, installed_versions
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.schemas import LEXICAL, TableSpec
from ingest_assets.stages.chunked import IDENTITY, chunked_documents, require_rows_of
from ingest_assets.stages.stage import Candidate
from ingest_assets.storage.parquet import RowReader
from ingest_assets.storage.tables import Table

_TEXT, _LANGUAGE = "contextualized", "language"
# Counting is several times faster by the hundred than by the one, and most documents have a few chunks.
ROWS_AT_ONCE = 512
# Each language counts all rows of a block for its own few: with more than these a document alone is faster.
LANGUAGES_AT_ONCE = 4
_counting = threading.Lock()


@dataclass(frozen=True, slots=True)
class LexicalStage:
    """Term counts per chunk; BM25 is computed when asked, never frozen into rows."""

    name: ClassVar[str] = "lexical"
    version: ClassVar[str] = "2"
    spec: ClassVar[TableSpec] = LEXICAL
    preload: ClassVar[tuple[str, ...]] = ()

    options: LexicalOptions = LexicalOptions()

    def __post_init__(self) -> None:
        language = self.options.language
        if uses_language(self.options) and language != "auto" and language not in STEMMED:
            raise ConfigError(
                f"embeddings.lexical.language: there are no stems and stop words for {language!r}; known are "
                f"{', '.join(STEMMED)}, or auto."
            )

    def config(self) -> Mapping[str, Any]:
        given = self.options.model_dump(mode="json")
        return given if uses_language(self.options) else {**given, _LANGUAGE: ""}

    def libraries(self) -> Mapping[str, str]:
        """Also Python's Unicode tables: they say what reads alike."""
        used = {"pystemmer": self.options.stemming, "bm25s": self.options.stop_words}
        packages = installed_versions("regex", *(name for name, is_used in used.items() if is_used))
        return {**packages, "unicode": unicodedata.unidata_version}

    def footer(self) -> Mapping[str, str]:
        """Also the options: a search must treat its query as the rows were treated."""
        return {"family": "lexical", "provider": "local", "options": canonical_json(self.config())}

    def candidates(self, chunks: Table, admission: Table) -> Iterator[Candidate]:
        """With `language = "auto"` a document's language is part of why its rows are current."""
        if not (uses_language(self.options) and self.options.language == "auto"):
            return chunked_documents(chunks)
        rows = admission.read(lambda rows: rows.select("doc_id", _LANGUAGE))
        languages = dict(zip(rows["doc_id"], rows[_LANGUAGE], strict=True))
        return (_in_language(each, languages.get(each.item_id, "")) for each in chunked_documents(chunks))

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """One document's term counts, chunk by chunk."""
        analysis = analysis_for(self.options, item.meta.get(_LANGUAGE, ""))
        rows = _counted(Path(item.input_paths[0]), item.meta["row"], item.meta["rows"], analysis)
        require_rows_of(item, rows)
        language = pa.array([analysis.language or None] * rows.num_rows, pa.string())
        return rows.append_column(_LANGUAGE, language).cast(self.spec.schema)


def _in_language(candidate: Candidate, language: str) -> Candidate:
    meta = {**candidate.meta, _LANGUAGE: language}
    return replace(candidate, upstream=f"{candidate.upstream} {language}", meta=meta)


def _counted(path: Path, start: int, rows: int, analysis: Analysis) -> pa.Table:
    """Rows of the chunks' table, counted with their neighbours, which will be asked for next."""
    try:
        return _from_blocks(path, start, rows, analysis)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return _read_and_count(path, start, rows, analysis)  # one bad text costs no neighbour: each alone


def _from_blocks(path: Path, start: int, rows: int, analysis: Analysis) -> pa.Table:
    status = path.stat()
    signature = (status.st_ino, status.st_size, status.st_mtime_ns)
    found = []
    for first in range(start - start % ROWS_AT_ONCE, start + rows, ROWS_AT_ONCE):
        with _counting:  # whoever asks for the same rows waits for them instead of counting them too
            block = _block(path, signature, first)
            whole = block.whole(analysis)
        begin = max(start - first, 0)
        part = (begin, start + rows - first - begin)
        found.append(_count(block.chunks.slice(*part), analysis) if whole is None else whole.slice(*part))
    return pa.concat_tables(found)


@dataclass(slots=True)
class _Block:
    """Chunks that stand side by side, read once for all languages."""

    chunks: pa.Table
    counted: dict[Analysis, pa.Table] = field(default_factory=dict)

    def whole(self, analysis: Analysis) -> pa.Table | None:
        """All of them counted, for the first few languages; nothing for any further one."""
        if analysis not in self.counted and len(self.counted) < LANGUAGES_AT_ONCE:
            self.counted[analysis] = _count(self.chunks, analysis)
        return self.counted.get(analysis)


@functools.lru_cache(maxsize=4)
def _block(path: Path, signature: tuple[int, ...], first: int) -> _Block:
    chunks = _read(path, first, ROWS_AT_ONCE)
    every = pa.array(range(chunks.num_rows), pa.int64())
    return _Block(chunks.take(every))  # a copy: a slice would keep its whole row group in memory


def _read_and_count(path: Path, start: int, rows: int, analysis: Analysis) -> pa.Table:
    return _count(_read(path, start, rows), analysis)


def _read(path: Path, start: int, rows: int) -> pa.Table:
    reader = RowReader(path, [*IDENTITY, _TEXT])
    try:
        return reader.read(start, rows)
    finally:
        reader.close()


def _count(chunks: pa.Table, analysis: Analysis) -> pa.Table:
    counted = count_terms(chunks[_TEXT].combine_chunks(), analysis)
    columns = {"terms": counted.terms, "counts": counted.counts, "length": counted.length}
    return pa.table({**{name: chunks[name] for name in IDENTITY}, **columns})

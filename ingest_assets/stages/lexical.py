"""Term counts: an item is a document, its rows are its chunks' terms."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import canonical_json, installed_versions
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.core.schemas import LEXICAL, TableSpec
from ingest_assets.search.terms import (
    SNOWBALL_NAMES,
    STOP_WORDS_VERSION,
    Analysis,
    analysis_for,
    uses_language,
)
from ingest_assets.settings.embeddings import LexicalOptions
from ingest_assets.stages.base import Candidate, Stage
from ingest_assets.stages.inputs import IDENTITY, chunked_documents, read_chunks
from ingest_assets.storage.table import Table

_LANGUAGE = "language"
_MAX_COUNT = 2**16 - 1  # limit of the column `counts`; `length` has a larger type


@dataclass(frozen=True, slots=True)
class LexicalStage(Stage):
    """Term counts per chunk. BM25 scores are not stored: a search computes them."""

    name: ClassVar[str] = "lexical"
    version: ClassVar[str] = "2"
    table: ClassVar[TableSpec] = LEXICAL

    options: LexicalOptions = LexicalOptions()

    def __post_init__(self) -> None:
        language = self.options.language
        if uses_language(self.options) and language != "auto" and language not in SNOWBALL_NAMES:
            raise ConfigError(
                f"embeddings.lexical.language: no stemmer and stop words for {language!r}; use one of "
                f"{', '.join(SNOWBALL_NAMES)}, or auto."
            )

    def config(self) -> Mapping[str, Any]:
        options = self.options.model_dump(mode="json")
        return options if uses_language(self.options) else {**options, _LANGUAGE: ""}

    def libraries(self) -> Mapping[str, str]:
        """Return the library versions, and that of Python's Unicode tables, which normalize the terms."""
        packages = installed_versions("regex", *(["pystemmer"] if self.options.stemming else []))
        if self.options.stop_words:
            # The lists are from this package; its name stays in fingerprints, so that no row is recomputed.
            packages["bm25s"] = STOP_WORDS_VERSION
        return {**packages, "unicode": unicodedata.unidata_version}

    def footer(self) -> Mapping[str, str]:
        """Return the footer with the options, which a search applies to its query."""
        return {"family": "lexical", "provider": "local", "options": canonical_json(self.config())}

    def candidates(self, chunks: Table, admission: Table) -> Iterator[Candidate]:
        """Yield a candidate per document; with `language = "auto"`, its language is in the fingerprint."""
        if not (uses_language(self.options) and self.options.language == "auto"):
            yield from chunked_documents(chunks)
            return
        languages = dict(admission.read(lambda rows: rows.select("doc_id", _LANGUAGE)).iter_rows())
        for candidate in chunked_documents(chunks):
            language = languages.get(candidate.item_id, "")
            meta = {**candidate.meta, _LANGUAGE: language}
            yield replace(candidate, input_fingerprint=f"{candidate.input_fingerprint} {language}", meta=meta)

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Return the term counts of one document's chunks."""
        analysis = analysis_for(self.options, item.meta.get(_LANGUAGE, ""))
        chunks = read_chunks(item)
        columns: dict[str, Any] = {name: chunks[name] for name in IDENTITY}
        columns |= count_terms(chunks["contextualized"].to_pylist(), analysis)
        columns[_LANGUAGE] = [analysis.language or None] * chunks.num_rows
        return pa.table(columns, schema=self.spec.schema)


def count_terms(texts: Iterable[str], analysis: Analysis) -> dict[str, list[Any]]:
    """Return the columns `terms` (distinct, in code-point order), `counts` and `length` (all occurrences)."""
    columns: dict[str, list[Any]] = {"terms": [], "counts": [], "length": []}
    for text in texts:
        counts = Counter(analysis.terms(text))
        terms = sorted(counts)
        columns["terms"].append(terms)
        columns["counts"].append([min(counts[term], _MAX_COUNT) for term in terms])
        columns["length"].append(counts.total())
    return columns

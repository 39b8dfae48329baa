"""The columns of every table. Names here are a contract with everybody who reads the Parquet files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

SCHEMA_VERSION = "1"


@dataclass(frozen=True)
class TableSpec:
    """A table's shape and how it rests: `asset` is its path, `key` the columns that identify a row, `about`
    what the web UI says of it."""

    asset: str
    schema: pa.Schema
    key: tuple[str, ...]
    rows_per_group: int
    descriptions: dict[str, str]
    dictionary: tuple[str, ...] = ("doc_id",)
    byte_stream_split: tuple[str, ...] = ()
    about: str = ""


Column = tuple[pa.Field, str]

_TEXT = pa.string()
_LONG_TEXT = pa.large_string()  # a row group of these may pass the 2 GiB that `string` can address
_INT = pa.int32()
_LONG = pa.int64()
_REAL = pa.float64()
_SMALL_REAL = pa.float32()


def _list(kind: pa.DataType, length: int = -1) -> pa.DataType:
    return pa.list_(pa.field("element", kind, nullable=False), length)


def _column(name: str, kind: pa.DataType, meaning: str) -> Column:
    return pa.field(name, kind, nullable=False), meaning


def _optional(name: str, kind: pa.DataType, meaning: str) -> Column:
    return pa.field(name, kind, nullable=True), meaning


def _table(
    asset: str,
    columns: Sequence[Column],
    *,
    key: str,
    rows_per_group: int,
    **others: Any,
) -> TableSpec:
    return TableSpec(
        asset=asset,
        schema=pa.schema([field for field, _ in columns]),
        key=(key,),
        rows_per_group=rows_per_group,
        descriptions={field.name: meaning for field, meaning in columns},
        **others,
    )


DOCUMENTS = _table(
    "documents",
    [
        _column(
            "doc_id",
            _TEXT,
            "Stable id: source name, colon, relative POSIX path in NFC; or the id it was queued with",
        ),
        _column("batch", _TEXT, "Home batch (partition) of the document, for life"),
        _column("seq", _LONG, "Intake sequence number: order of first sight"),
        _column("source", _TEXT, "Name of the watched folder; queue for what was queued"),
        _column("uri", _TEXT, "Where the document came from"),
        _column("path", _TEXT, "Where the bytes rest"),
        _column("content_hash", _TEXT, "sha256 of the raw bytes"),
        _column("mime", _TEXT, "Media type by name and leading bytes"),
        _column("size_bytes", _LONG, "Size of the raw bytes"),
        _optional("resolver", _TEXT, "Who acquired it, for what was queued"),
        _optional("host", _TEXT, "Host it was fetched from"),
        _optional("etag", _TEXT, "What its server calls this version"),
        _optional("last_modified", _TEXT, "When it last changed, as its server says"),
        _optional("meta", _TEXT, "What it was queued with, as JSON"),
    ],
    key="doc_id",
    rows_per_group=4096,
    dictionary=("batch", "source", "mime", "resolver", "host"),
    about="One row per acquired document: where it came from, its bytes' hash, where the bytes rest.",
)

DOCTAGS = _table(
    "doctags",
    [
        _column("doc_id", _TEXT, "The document"),
        _column("content_hash", _TEXT, "sha256 of the bytes this row was made from"),
        _column(
            "fingerprint",
            _TEXT,
            "Why this row is current: stage, settings, libraries and content in one hash",
        ),
        _column("doctags", _LONG_TEXT, "DocTags markup"),
        _column("document", _LONG_TEXT, "The Docling document as JSON"),
        _column("parser", _TEXT, "Which pipeline read it"),
        _column("pages", _INT, "Pages (0 where the format has none)"),
        _column("texts", _INT, "Text items"),
        _column("tables", _INT, "Tables"),
        _column("pictures", _INT, "Pictures"),
        _column("chars", _LONG, "Characters of text; 0 means there is nothing to chunk"),
        _optional("title", _TEXT, "Title, where the document states one"),
        _column("warnings", _list(_TEXT), "What was repaired or left out"),
    ],
    key="doc_id",
    rows_per_group=8,  # whole documents: a reader of one must not load hundreds
    dictionary=("parser",),
    about="One row per converted document: DocTags markup, the Docling document as JSON, counters.",
)

_QUALITY_PARTS = pa.struct(
    [
        pa.field(name, _REAL, nullable=False)
        for name in ("clean", "letters", "running", "variety", "structure", "language")
    ]
)

ADMISSION = _table(
    "admission",
    [
        _column("doc_id", _TEXT, "The document"),
        _column("fingerprint", _TEXT, "Of the document and the rules, without what other documents say"),
        _column(
            "stage_trace", _list(_TEXT), "The marks it came to, in order; a rejection is at the last one"
        ),
        _column("admitted", pa.bool_(), "True when it is chunked"),
        _optional(
            "tier", _TEXT, "TIER0: clean and cheap; TIER1: admitted, but large, isolated or of low quality"
        ),
        _optional("reject_mark", _TEXT, "Where it was rejected"),
        _optional("reject_reason", _TEXT, "Why"),
        _optional("reject_figure", _REAL, "The figure that decided"),
        _optional("reject_limit", _REAL, "What the figure was held against"),
        _optional("duplicate_of", _TEXT, "The document whose text it repeats"),
        _optional("near_duplicate_of", _TEXT, "The document whose text it nearly repeats"),
        _optional("similarity", _REAL, "How near, from 0 to 1"),
        _optional(
            "structural_reason", _TEXT, "What the structural filter found, also where something else decided"
        ),
        _optional("structural_figure", _REAL, "The figure of that"),
        _optional("structural_limit", _REAL, "What it was held against"),
        _column("language", _TEXT, "Language code; und where it cannot be told"),
        _column("language_score", _REAL, "How sure that is, from 0 to 1"),
        _column("entropy", _REAL, "Bits per character"),
        _column("chars", _LONG, "Characters that are not whitespace"),
        _column("meaningful_chars", _LONG, "Letters and digits"),
        _column("text_hash", _TEXT, "sha256 of the normalised text: equal texts are duplicates"),
        _column("size_class", _TEXT, "small, medium, large or huge"),
        _column("quality", _REAL, "Quality score from 0 to 1"),
        _column("quality_parts", _QUALITY_PARTS, "What the score is made of"),
        _column("tier_reasons", _list(_TEXT), "Why it is TIER1"),
        _optional("title", _TEXT, "Title"),
        _optional("url", _TEXT, "Where it was fetched from"),
        _optional("domain", _TEXT, "The host of that"),
        _column("mime", _TEXT, "Media type"),
        _column("source", _TEXT, "Watched folder, or queue"),
        _optional("published", _TEXT, "Its day, as its first lines or its address say"),
        _optional("modified", _TEXT, "The day it last changed, as its server says"),
        _optional("signature", pa.binary(), "MinHash of its shingles, where near duplicates count"),
    ],
    key="doc_id",
    rows_per_group=2048,
    dictionary=("tier", "reject_mark", "reject_reason", "language", "size_class", "mime", "source", "domain"),
    about="One row per converted document: the marks it came to, its tier, or why it was rejected.",
)

CHUNKS = _table(
    "chunks",
    [
        _column("chunk_id", _TEXT, "UUID from document, ordinal and text"),
        _column("doc_id", _TEXT, "The document"),
        _column("ordinal", _INT, "Position within the document, from 0"),
        _column("text", _TEXT, "The chunk's own text"),
        _column("contextualized", _TEXT, "Headings and captions followed by the text: what is embedded"),
        _column("headings", _list(_TEXT), "Headings above the chunk, outermost first"),
        _column("captions", _list(_TEXT), "Captions of its figures and tables"),
        _column("pages", _list(_INT), "Pages it stands on"),
        _column("item_refs", _list(_TEXT), "Docling items it is made of"),
        _column("tokens", _INT, "Tokens of the contextualized text, by the embedder's tokenizer"),
        _column(
            "start_offset",
            _LONG,
            "Characters of chunk text before its own in the document, repeated ones once",
        ),
    ],
    key="chunk_id",
    rows_per_group=2048,
    about="One row per chunk: text, contextualized text, headings, pages, tokens, provenance.",
)

# What every embedding family's rows begin with.
_OF_A_CHUNK = [
    _column("chunk_id", _TEXT, "The chunk"),
    _column("doc_id", _TEXT, "The document"),
    _column("ordinal", _INT, "Position of the chunk within the document"),
]


def dense_spec(dim: int) -> TableSpec:
    """The dense family's table for vectors of `dim` dimensions."""
    return _table(
        "embeddings/dense",
        [
            *_OF_A_CHUNK,
            _column("vector", _list(_SMALL_REAL, dim), "Unit vector of the contextualized text"),
            _column("norm", _SMALL_REAL, "Length of the model's vector before it was scaled to one"),
        ],
        key="chunk_id",
        rows_per_group=4096,
        byte_stream_split=("vector.list.element",),
        about="One unit vector per chunk, from the contextualized text.",
    )


SPARSE = _table(
    "embeddings/sparse",
    [
        *_OF_A_CHUNK,
        _column(
            "indices", _list(pa.uint32()), "Vocabulary entries of the model that have a weight, ascending"
        ),
        _column("values", _list(_SMALL_REAL), "The weight of each"),
    ],
    key="chunk_id",
    rows_per_group=4096,
    byte_stream_split=("values.list.element",),
    about="Weighted vocabulary entries per chunk, where a model of the SPLADE kind is configured.",
)

LEXICAL = _table(
    "embeddings/lexical",
    [
        *_OF_A_CHUNK,
        _column("terms", _list(_TEXT), "Distinct terms in code-point order"),
        _column("counts", _list(pa.uint16()), "How often each term occurs"),
        _column("length", _INT, "All term occurrences together"),
        _optional(
            "language",
            _TEXT,
            "Whose stems or stop words made the terms; none where words are terms as they are",
        ),
    ],
    key="chunk_id",
    rows_per_group=4096,
    dictionary=("doc_id", "terms.list.element", "language"),
    about="Term counts per chunk, for BM25 at query time.",
)

LEXICAL_STATS = _table(
    "lexical_stats",
    [
        _column("term", _TEXT, "The term; in code-point order"),
        _column("document_frequency", pa.uint32(), "Chunks that hold it"),
        _column("total_count", pa.uint64(), "Its occurrences in all of them"),
    ],
    key="term",
    rows_per_group=65_536,
    dictionary=(),
)

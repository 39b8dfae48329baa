"""The columns of every table. Names here are a contract with everybody who reads the Parquet files."""

from dataclasses import dataclass

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


def _text(name: str, nullable: bool = False) -> pa.Field:
    return pa.field(name, pa.large_string() if name in _LARGE else pa.string(), nullable=nullable)


_LARGE = {"doctags", "document"}
_STRINGS = pa.list_(pa.field("element", pa.string(), nullable=False))

# What every embedding family's rows begin with.
_OF_A_CHUNK = [_text("chunk_id"), _text("doc_id"), pa.field("ordinal", pa.int32(), nullable=False)]
_OF_A_CHUNK_MEAN = {
    "chunk_id": "The chunk",
    "doc_id": "The document",
    "ordinal": "Position of the chunk within the document",
}

DOCUMENTS = TableSpec(
    asset="documents",
    about="One row per acquired document: where it came from, its bytes' hash, where the bytes rest.",
    key=("doc_id",),
    rows_per_group=4096,
    schema=pa.schema(
        [
            _text("doc_id"),
            _text("batch"),
            pa.field("seq", pa.int64(), nullable=False),
            _text("source"),
            _text("uri"),
            _text("path"),
            _text("content_hash"),
            _text("mime"),
            pa.field("size_bytes", pa.int64(), nullable=False),
            *(_text(name, nullable=True) for name in ("resolver", "host", "etag", "last_modified", "meta")),
        ]
    ),
    descriptions={
        "doc_id": "Stable id: source name, colon, relative POSIX path in NFC; or the id it was queued with",
        "batch": "Home batch (partition) of the document, for life",
        "seq": "Intake sequence number: order of first sight",
        "source": "Name of the watched folder; queue for what was queued",
        "uri": "Where the document came from",
        "path": "Where the bytes rest",
        "content_hash": "sha256 of the raw bytes",
        "mime": "Media type by name and leading bytes",
        "size_bytes": "Size of the raw bytes",
        "resolver": "Who acquired it, for what was queued",
        "host": "Host it was fetched from",
        "etag": "What its server calls this version",
        "last_modified": "When it last changed, as its server says",
        "meta": "What it was queued with, as JSON",
    },
    dictionary=("batch", "source", "mime", "resolver", "host"),
)

DOCTAGS = TableSpec(
    asset="doctags",
    about="One row per converted document: DocTags markup, the Docling document as JSON, counters.",
    key=("doc_id",),
    rows_per_group=8,
    schema=pa.schema(
        [
            _text("doc_id"),
            _text("content_hash"),
            _text("fingerprint"),
            _text("doctags"),
            _text("document"),
            _text("parser"),
            *(pa.field(n, pa.int32(), nullable=False) for n in ("pages", "texts", "tables", "pictures")),
            pa.field("chars", pa.int64(), nullable=False),
            _text("title", nullable=True),
            pa.field("warnings", _STRINGS, nullable=False),
        ]
    ),
    descriptions={
        "doc_id": "The document",
        "content_hash": "sha256 of the bytes this row was made from",
        "fingerprint": "Why this row is current: stage, settings, libraries and content in one hash",
        "doctags": "DocTags markup",
        "document": "The Docling document as JSON",
        "parser": "Which pipeline read it",
        "pages": "Pages (0 where the format has none)",
        "texts": "Text items",
        "tables": "Tables",
        "pictures": "Pictures",
        "chars": "Characters of text; 0 means there is nothing to chunk",
        "title": "Title, where the document states one",
        "warnings": "What was repaired or left out",
    },
    dictionary=("parser",),
)

_REAL = [
    pa.field(name, pa.float64(), nullable=True)
    for name in ("reject_figure", "reject_limit", "similarity", "structural_figure", "structural_limit")
]

_QUALITY_PARTS = pa.struct(
    [
        pa.field(name, pa.float64(), nullable=False)
        for name in ("clean", "letters", "running", "variety", "structure", "language")
    ]
)

ADMISSION = TableSpec(
    asset="admission",
    about="One row per converted document: the marks it came to, its tier, or why it was rejected.",
    key=("doc_id",),
    rows_per_group=2048,
    schema=pa.schema(
        [
            _text("doc_id"),
            _text("fingerprint"),
            pa.field("stage_trace", _STRINGS, nullable=False),
            pa.field("admitted", pa.bool_(), nullable=False),
            *(_text(name, nullable=True) for name in ("tier", "reject_mark", "reject_reason")),
            *_REAL[:2],
            *(_text(name, nullable=True) for name in ("duplicate_of", "near_duplicate_of")),
            _REAL[2],
            _text("structural_reason", nullable=True),
            *_REAL[3:],
            _text("language"),
            *(pa.field(n, pa.float64(), nullable=False) for n in ("language_score", "entropy")),
            *(pa.field(n, pa.int64(), nullable=False) for n in ("chars", "meaningful_chars")),
            *(_text(name) for name in ("text_hash", "size_class")),
            pa.field("quality", pa.float64(), nullable=False),
            pa.field("quality_parts", _QUALITY_PARTS, nullable=False),
            pa.field("tier_reasons", _STRINGS, nullable=False),
            *(_text(name, nullable=True) for name in ("title", "url", "domain")),
            *(_text(name) for name in ("mime", "source")),
            *(_text(name, nullable=True) for name in ("published", "modified")),
            pa.field("signature", pa.binary(), nullable=True),
        ]
    ),
    descriptions={
        "doc_id": "The document",
        "fingerprint": "Of the document and the rules, without what other documents say",
        "stage_trace": "The marks it came to, in order; a rejection is at the last one",
        "admitted": "True when it is chunked",
        "tier": "TIER0: clean and cheap; TIER1: admitted, but large, isolated or of low quality",
        "reject_mark": "Where it was rejected",
        "reject_reason": "Why",
        "reject_figure": "The figure that decided",
        "reject_limit": "What the figure was held against",
        "duplicate_of": "The document whose text it repeats",
        "near_duplicate_of": "The document whose text it nearly repeats",
        "similarity": "How near, from 0 to 1",
        "structural_reason": "What the structural filter found, also where something else decided",
        "structural_figure": "The figure of that",
        "structural_limit": "What it was held against",
        "language": "Language code; und where it cannot be told",
        "language_score": "How sure that is, from 0 to 1",
        "entropy": "Bits per character",
        "chars": "Characters that are not whitespace",
        "meaningful_chars": "Letters and digits",
        "text_hash": "sha256 of the normalised text: equal texts are duplicates",
        "size_class": "small, medium, large or huge",
        "quality": "Quality score from 0 to 1",
        "quality_parts": "What the score is made of",
        "tier_reasons": "Why it is TIER1",
        "title": "Title",
        "url": "Where it was fetched from",
        "domain": "The host of that",
        "mime": "Media type",
        "source": "Watched folder, or queue",
        "published": "Its day, as its first lines or its address say",
        "modified": "The day it last changed, as its server says",
        "signature": "MinHash of its shingles, where near duplicates count",
    },
    dictionary=("tier", "reject_mark", "reject_reason", "language", "size_class", "mime", "source", "domain"),
)

CHUNKS = TableSpec(
    asset="chunks",
    about="One row per chunk: text, contextualized text, headings, pages, tokens, provenance.",
    key=("chunk_id",),
    rows_per_group=2048,
    schema=pa.schema(
        [
            _text("chunk_id"),
            _text("doc_id"),
            pa.field("ordinal", pa.int32(), nullable=False),
            _text("text"),
            _text("contextualized"),
            pa.field("headings", _STRINGS, nullable=False),
            pa.field("captions", _STRINGS, nullable=False),
            pa.field("pages", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False),
            pa.field("item_refs", _STRINGS, nullable=False),
            pa.field("tokens", pa.int32(), nullable=False),
            pa.field("start_offset", pa.int64(), nullable=False),
        ]
    ),
    descriptions={
        "chunk_id": "UUID from document, ordinal and text",
        "doc_id": "The document",
        "ordinal": "Position within the document, from 0",
        "text": "The chunk's own text",
        "contextualized": "Headings and captions followed by the text: what is embedded",
        "headings": "Headings above the chunk, outermost first",
        "captions": "Captions of its figures and tables",
        "pages": "Pages it stands on",
        "item_refs": "Docling items it is made of",
        "tokens": "Tokens of the contextualized text, by the embedder's tokenizer",
        "start_offset": "Characters of chunk text before its own in the document, repeated ones once",
    },
)


def dense_spec(dim: int) -> TableSpec:
    """The dense family's table for vectors of `dim` dimensions."""
    vector = pa.list_(pa.field("element", pa.float32(), nullable=False), dim)
    return TableSpec(
        asset="embeddings/dense",
        about="One unit vector per chunk, from the contextualized text.",
        key=("chunk_id",),
        rows_per_group=4096,
        schema=pa.schema(
            [
                *_OF_A_CHUNK,
                pa.field("vector", vector, nullable=False),
                pa.field("norm", pa.float32(), nullable=False),
            ]
        ),
        descriptions={
            **_OF_A_CHUNK_MEAN,
            "vector": "Unit vector of the contextualized text",
            "norm": "Length of the model's vector before it was scaled to one",
        },
        byte_stream_split=("vector.list.element",),
    )


SPARSE = TableSpec(
    asset="embeddings/sparse",
    about="Weighted vocabulary entries per chunk, where a model of the SPLADE kind is configured.",
    key=("chunk_id",),
    rows_per_group=4096,
    schema=pa.schema(
        [
            *_OF_A_CHUNK,
            pa.field("indices", pa.list_(pa.field("element", pa.uint32(), nullable=False)), nullable=False),
            pa.field("values", pa.list_(pa.field("element", pa.float32(), nullable=False)), nullable=False),
        ]
    ),
    descriptions={
        **_OF_A_CHUNK_MEAN,
        "indices": "Vocabulary entries of the model that have a weight, ascending",
        "values": "The weight of each",
    },
    byte_stream_split=("values.list.element",),
)

LEXICAL = TableSpec(
    asset="embeddings/lexical",
    about="Term counts per chunk, for BM25 at query time.",
    key=("chunk_id",),
    rows_per_group=4096,
    schema=pa.schema(
        [
            *_OF_A_CHUNK,
            pa.field("terms", _STRINGS, nullable=False),
            pa.field("counts", pa.list_(pa.field("element", pa.uint16(), nullable=False)), nullable=False),
            pa.field("length", pa.int32(), nullable=False),
            _text("language", nullable=True),
        ]
    ),
    descriptions={
        **_OF_A_CHUNK_MEAN,
        "terms": "Distinct terms in code-point order",
        "counts": "How often each term occurs",
        "length": "All term occurrences together",
        "language": "Whose stems or stop words made the terms; none where words are terms as they are",
    },
    dictionary=("doc_id", "terms.list.element", "language"),
)


LEXICAL_STATS = TableSpec(
    asset="lexical_stats",
    key=("term",),
    rows_per_group=65_536,
    schema=pa.schema(
        [
            _text("term"),
            pa.field("document_frequency", pa.uint32(), nullable=False),
            pa.field("total_count", pa.uint64(), nullable=False),
        ]
    ),
    descriptions={
        "term": "The term; in code-point order",
        "document_frequency": "Chunks that hold it",
        "total_count": "Its occurrences in all of them",
    },
    dictionary=(),
)

"""The columns of every table. Names are a contract with every reader of the Parquet files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

SCHEMA_VERSION = "1"


@dataclass(frozen=True)
class TableSpec:
    """A table's schema and file layout: `asset` is its path, `key` the columns that identify a row, `about`
    its description in the web UI."""

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
_LONG_TEXT = pa.large_string()  # a row group of these may exceed the 2 GiB that `string` can address
_INT = pa.int32()
_LONG = pa.int64()
_REAL = pa.float64()
_SMALL_REAL = pa.float32()


def _list(element: pa.DataType, length: int = -1) -> pa.DataType:
    return pa.list_(pa.field("element", element, nullable=False), length)


def _column(name: str, dtype: pa.DataType, meaning: str) -> Column:
    return pa.field(name, dtype, nullable=False), meaning


def _optional(name: str, dtype: pa.DataType, meaning: str) -> Column:
    return pa.field(name, dtype, nullable=True), meaning


def _table(
    asset: str,
    columns: Sequence[Column],
    *,
    key: str,
    rows_per_group: int,
    **options: Any,
) -> TableSpec:
    return TableSpec(
        asset=asset,
        schema=pa.schema([field for field, _ in columns]),
        key=(key,),
        rows_per_group=rows_per_group,
        descriptions={field.name: meaning for field, meaning in columns},
        **options,
    )


DOCUMENTS = _table(
    "documents",
    [
        _column(
            "doc_id",
            _TEXT,
            "Stable id: source name, colon, relative POSIX path in NFC; or the id in the queued list",
        ),
        _column("batch", _TEXT, "Batch (partition) of the document; it never changes"),
        _column("seq", _LONG, "Intake sequence number: the order in which documents were first seen"),
        _column("source", _TEXT, "Name of the watched folder; `queue` for queued documents"),
        _column("uri", _TEXT, "URI of the original document"),
        _column("path", _TEXT, "Path of the file"),
        _column("content_hash", _TEXT, "sha256 of the file"),
        _column("mime", _TEXT, "Media type, by file name and first bytes"),
        _column("size_bytes", _LONG, "Size of the file in bytes"),
        _optional("resolver", _TEXT, "Resolver that acquired a queued document"),
        _optional("host", _TEXT, "Host that served the document"),
        _optional("etag", _TEXT, "ETag of the server's response"),
        _optional("last_modified", _TEXT, "Last-Modified of the server's response"),
        _optional("meta", _TEXT, "Metadata from the queued list, as JSON"),
    ],
    key="doc_id",
    rows_per_group=4096,
    dictionary=("batch", "source", "mime", "resolver", "host"),
    about="One row per acquired document: origin, content hash and file path.",
)

DOCTAGS = _table(
    "doctags",
    [
        _column("doc_id", _TEXT, "Id of the document"),
        _column("content_hash", _TEXT, "sha256 of the converted file"),
        _column(
            "fingerprint",
            _TEXT,
            "Hash of stage, settings, library versions and content; the row is current while it is unchanged",
        ),
        _column("doctags", _LONG_TEXT, "DocTags markup"),
        _column("document", _LONG_TEXT, "Docling document as JSON"),
        _column("parser", _TEXT, "Pipeline that converted the document"),
        _column("pages", _INT, "Number of pages; 0 for formats without pages"),
        _column("texts", _INT, "Number of text items"),
        _column("tables", _INT, "Number of tables"),
        _column("pictures", _INT, "Number of pictures"),
        _column("chars", _LONG, "Characters of text; 0 = nothing to chunk"),
        _optional("title", _TEXT, "Title stated by the document"),
        _column("warnings", _list(_TEXT), "Repaired or skipped content"),
    ],
    key="doc_id",
    rows_per_group=8,  # rows are whole documents: reading one must not load hundreds
    dictionary=("parser",),
    about="One row per converted document: DocTags markup, Docling JSON and counts.",
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
        _column("doc_id", _TEXT, "Id of the document"),
        _column(
            "fingerprint",
            _TEXT,
            "Hash of the document and the admission settings, without the influence of other documents",
        ),
        _column("stage_trace", _list(_TEXT), "Checks in order, up to the one that rejected the document"),
        _column("admitted", pa.bool_(), "True if the document is chunked"),
        _optional("tier", _TEXT, "TIER0 = normal; TIER1 = admitted, but large, isolated or of low quality"),
        _optional("reject_mark", _TEXT, "Check that rejected the document"),
        _optional("reject_reason", _TEXT, "Reason of the rejection"),
        _optional("reject_figure", _REAL, "Measured value that caused the rejection"),
        _optional("reject_limit", _REAL, "Limit of that value"),
        _optional("duplicate_of", _TEXT, "Earlier document with the same text"),
        _optional("near_duplicate_of", _TEXT, "Earlier document with nearly the same text"),
        _optional("similarity", _REAL, "Similarity to that document, 0 to 1"),
        _optional(
            "structural_reason",
            _TEXT,
            "Finding of the structural filter, also if another check rejected the document",
        ),
        _optional("structural_figure", _REAL, "Measured value of that finding"),
        _optional("structural_limit", _REAL, "Limit of that value"),
        _column("language", _TEXT, "Language code; `und` = undetermined"),
        _column("language_score", _REAL, "Confidence of the language detection, 0 to 1"),
        _column("entropy", _REAL, "Bits per character"),
        _column("chars", _LONG, "Characters without whitespace"),
        _column("meaningful_chars", _LONG, "Letters and digits"),
        _column(
            "text_hash", _TEXT, "sha256 of the normalized text; documents with equal hashes are duplicates"
        ),
        _column("size_class", _TEXT, "small, medium, large or huge"),
        _column("quality", _REAL, "Quality score, 0 to 1"),
        _column("quality_parts", _QUALITY_PARTS, "Components of the quality score"),
        _column("tier_reasons", _list(_TEXT), "Reasons for TIER1"),
        _optional("title", _TEXT, "Title"),
        _optional("url", _TEXT, "URL of the document"),
        _optional("domain", _TEXT, "Host of the URL"),
        _column("mime", _TEXT, "Media type"),
        _column("source", _TEXT, "Name of the watched folder, or `queue`"),
        _optional("published", _TEXT, "Publication date, from the first lines or the URL"),
        _optional("modified", _TEXT, "Date of the server's Last-Modified"),
        _optional("signature", pa.binary(), "MinHash signature, if near duplicates are enabled"),
    ],
    key="doc_id",
    rows_per_group=2048,
    dictionary=("tier", "reject_mark", "reject_reason", "language", "size_class", "mime", "source", "domain"),
    about="One row per converted document: checks passed, tier, or the reason of its rejection.",
)

CHUNKS = _table(
    "chunks",
    [
        _column("chunk_id", _TEXT, "UUID computed from document id, ordinal and text"),
        _column("doc_id", _TEXT, "Id of the document"),
        _column("ordinal", _INT, "Position within the document, from 0"),
        _column("text", _TEXT, "Text of the chunk"),
        _column("contextualized", _TEXT, "Headings and captions followed by the text; this is embedded"),
        _column("headings", _list(_TEXT), "Headings above the chunk, outermost first"),
        _column("captions", _list(_TEXT), "Captions of figures and tables in the chunk"),
        _column("pages", _list(_INT), "Page numbers"),
        _column("item_refs", _list(_TEXT), "References of the Docling items in the chunk"),
        _column("tokens", _INT, "Tokens of the contextualized text, counted by the embedder's tokenizer"),
        _column(
            "start_offset",
            _LONG,
            "Characters of chunk text before this chunk in the document, overlaps counted once",
        ),
    ],
    key="chunk_id",
    rows_per_group=2048,
    about="One row per chunk: text, contextualized text, headings, pages, tokens, provenance.",
)

# The first columns of every embedding table.
_CHUNK_COLUMNS = [
    _column("chunk_id", _TEXT, "Id of the chunk"),
    _column("doc_id", _TEXT, "Id of the document"),
    _column("ordinal", _INT, "Position of the chunk within the document"),
]


def dense_spec(dim: int) -> TableSpec:
    """Return the dense table for vectors of `dim` dimensions."""
    return _table(
        "embeddings/dense",
        [
            *_CHUNK_COLUMNS,
            _column("vector", _list(_SMALL_REAL, dim), "Unit vector of the contextualized text"),
            _column("norm", _SMALL_REAL, "Length of the vector before it was scaled to unit length"),
        ],
        key="chunk_id",
        rows_per_group=4096,
        byte_stream_split=("vector.list.element",),
        about="One unit vector per chunk, of the contextualized text.",
    )


SPARSE = _table(
    "embeddings/sparse",
    [
        *_CHUNK_COLUMNS,
        _column("indices", _list(pa.uint32()), "Vocabulary indices with a weight, ascending"),
        _column("values", _list(_SMALL_REAL), "Weight of each index"),
    ],
    key="chunk_id",
    rows_per_group=4096,
    byte_stream_split=("values.list.element",),
    about="Weighted vocabulary entries per chunk, if a SPLADE model is configured.",
)

LEXICAL = _table(
    "embeddings/lexical",
    [
        *_CHUNK_COLUMNS,
        _column("terms", _list(_TEXT), "Distinct terms in code-point order"),
        _column("counts", _list(pa.uint16()), "Occurrences of each term"),
        _column("length", _INT, "Occurrences of all terms"),
        _optional(
            "language",
            _TEXT,
            "Language of the stemmer and stop words; null if neither was applied",
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
        _column("term", _TEXT, "Term; rows are in code-point order"),
        _column("document_frequency", pa.uint32(), "Chunks that contain the term"),
        _column("total_count", pa.uint64(), "Occurrences in all chunks"),
    ],
    key="term",
    rows_per_group=65_536,
    dictionary=(),
    about="One row per term of the whole corpus, in one file: corpus.parquet.",
)

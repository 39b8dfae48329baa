"""Docling documents become chunks within the embedder's token budget."""

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from ingest_assets.core.identity import chunk_id, installed_versions
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.core.schemas import CHUNKS, TableSpec
from ingest_assets.embedders.model_files import count_tokens, load_tokenizer, tokenizer_files
from ingest_assets.settings.chunks import ChunkOptions, Cut, settled
from ingest_assets.settings.embeddings import PACKAGED_MODEL
from ingest_assets.stages.base import PRELOAD, Candidate, Stage
from ingest_assets.stages.inputs import documents_with_text, read_document
from ingest_assets.stages.object_pool import ObjectPool
from ingest_assets.storage.table import Table

if TYPE_CHECKING:
    from ingest_assets.stages.chunks.cut import Cutter, Piece


@dataclass(frozen=True, slots=True)
class ChunksStage(Stage):
    """Structure-aware chunks of one document.

    `tokenizer` is a folder with a tokenizer's files, or the name of the packaged model; `limit` is what the
    embedder reads, special tokens included, where that is known, and `prefix` what it puts before a chunk.
    """

    name: ClassVar[str] = "chunks"
    version: ClassVar[str] = "4"
    table: ClassVar[TableSpec] = CHUNKS
    preload: ClassVar[tuple[str, ...]] = PRELOAD

    options: ChunkOptions = ChunkOptions()
    tokenizer: str = PACKAGED_MODEL
    limit: int | None = 256
    prefix: str = ""

    @property
    def cut(self) -> Cut:
        """The options with nothing left open."""
        special = tokenizer_files(self.tokenizer).special_tokens
        takes_prefix = self.prefix and self.limit is not None
        prefix = count_tokens(self.tokenizer, self.prefix) if takes_prefix else 0
        return settled(self.options, self.limit, special_tokens=special, prefix_tokens=prefix)

    def config(self) -> Mapping[str, Any]:
        return {**asdict(self.cut), "tokenizer": tokenizer_files(self.tokenizer).content_hash}

    def libraries(self) -> Mapping[str, str]:
        return installed_versions("docling-core", "semchunk", "tokenizers")

    def footer(self) -> Mapping[str, str]:
        return {"tokenizer": tokenizer_files(self.tokenizer).name, "max_tokens": str(self.cut.max_tokens)}

    def candidates(self, doctags: Table, admission: Table) -> Iterator[Candidate]:
        """Admitted documents with text; which ones those are does not change what is made of each."""
        admitted = set(admission.read(lambda rows: rows.filter("admitted").select("doc_id")).to_series())
        yield from (document for document in documents_with_text(doctags) if document.item_id in admitted)

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Cut one document with a warm cutter."""
        files = tokenizer_files(self.tokenizer)
        with _CUTTERS.lend(self.tokenizer, self.cut, files.content_hash) as cutter, uncollected():
            document = read_document(item)
            pieces, left_out = cutter.pieces(document)
            if left_out:
                context.count("chunks_left_out", left_out)
            return _table(item.item_id, pieces, document, cutter)


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection meanwhile, in all threads; for one item's work, never for a whole run.

    Chunking makes thousands of small objects, through which the collector would look again and again.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _table(doc_id: str, pieces: Iterable["Piece"], document: Any, cutter: "Cutter") -> pa.Table:
    rows: list[dict[str, Any]] = []
    offset = 0
    for ordinal, piece in enumerate(pieces):
        contextualized = _storable(piece.contextualized)
        text = _storable(piece.repeated + piece.text)
        rows.append(
            {
                "chunk_id": chunk_id(doc_id, ordinal, text),
                "doc_id": doc_id,
                "ordinal": ordinal,
                "text": text,
                "contextualized": contextualized,
                "headings": [_storable(heading) for heading in piece.headings],
                "captions": _captions(piece, document),
                "pages": sorted({origin.page_no for item in piece.items for origin in item.prov}),
                "item_refs": [item.self_ref for item in piece.items],
                "tokens": cutter.count(contextualized),
                "start_offset": offset,
            }
        )
        offset += len(_storable(piece.text))
    return pa.Table.from_pylist(rows, schema=CHUNKS.schema)


def _captions(piece: "Piece", document: Any) -> list[str]:
    """Captions of a chunk's tables and pictures; the chunk's own metadata no longer carries them."""
    from docling_core.types.doc.document import DocItem, FloatingItem

    texts = []
    for item in piece.items:
        # what Docling copied lost its kind
        whole = item.get_ref().resolve(document) if type(item) is DocItem else item
        if isinstance(whole, FloatingItem) and whole.captions:
            texts.append(whole.caption_text(document))
    return [_storable(text) for text in dict.fromkeys(texts) if text]


def _storable(text: str) -> str:
    """Lone surrogates from broken documents have no UTF-8 form."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _open_cutter(tokenizer: str, cut: Cut, _content_hash: str) -> "Cutter":
    from ingest_assets.stages.chunks.cut import Cutter

    return Cutter(load_tokenizer(tokenizer), cut)


_CUTTERS = ObjectPool(_open_cutter)

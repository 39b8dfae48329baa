"""The chunks stage: cuts Docling documents into chunks within the embedder's token limit."""

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
from ingest_assets.settings.chunks import ChunkOptions, ResolvedOptions, resolve_options
from ingest_assets.settings.embeddings import PACKAGED_MODEL
from ingest_assets.stages.base import PRELOAD, Candidate, Stage
from ingest_assets.stages.inputs import documents_with_text, read_document
from ingest_assets.stages.object_pool import ObjectPool
from ingest_assets.storage.table import Table

if TYPE_CHECKING:
    from ingest_assets.stages.chunks.cutter import Cutter, Piece


@dataclass(frozen=True, slots=True)
class ChunksStage(Stage):
    """Structure-aware chunks of one document.

    `tokenizer` is a folder with a tokenizer's files, or the name of the packaged model. `limit` is the
    embedder's token limit including special tokens, if known; `prefix` is the text it puts before a chunk.
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
    def cut(self) -> ResolvedOptions:
        """The options with all values resolved."""
        special = tokenizer_files(self.tokenizer).special_tokens
        takes_prefix = self.prefix and self.limit is not None
        prefix = count_tokens(self.tokenizer, self.prefix) if takes_prefix else 0
        return resolve_options(self.options, self.limit, special_tokens=special, prefix_tokens=prefix)

    def config(self) -> Mapping[str, Any]:
        return {**asdict(self.cut), "tokenizer": tokenizer_files(self.tokenizer).content_hash}

    def libraries(self) -> Mapping[str, str]:
        return installed_versions("docling-core", "semchunk", "tokenizers")

    def footer(self) -> Mapping[str, str]:
        return {"tokenizer": tokenizer_files(self.tokenizer).name, "max_tokens": str(self.cut.max_tokens)}

    def candidates(self, doctags: Table, admission: Table) -> Iterator[Candidate]:
        """Yield the admitted documents with text. Verdicts are not in fingerprints: they change no chunk."""
        admitted = set(admission.read(lambda rows: rows.filter("admitted").select("doc_id")).to_series())
        yield from (document for document in documents_with_text(doctags) if document.item_id in admitted)

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Cut one document into chunks."""
        files = tokenizer_files(self.tokenizer)
        with _CUTTERS.lend(self.tokenizer, self.cut, files.content_hash) as cutter, gc_paused():
            document = read_document(item)
            pieces, left_out = cutter.pieces(document)
            if left_out:
                context.count("chunks_left_out", left_out)
            return _table(item.item_id, pieces, document, cutter)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection in all threads. For the work on one item, never for a whole run.

    Chunking creates thousands of small objects, which the collector would scan again and again.
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
    """Return the captions of a chunk's tables and pictures, which are not in Docling's chunk metadata."""
    from docling_core.types.doc.document import DocItem, FloatingItem

    texts = []
    for item in piece.items:
        # Docling's copies of items have lost their type.
        original = item.get_ref().resolve(document) if type(item) is DocItem else item
        if isinstance(original, FloatingItem) and original.captions:
            texts.append(original.caption_text(document))
    return [_storable(text) for text in dict.fromkeys(texts) if text]


def _storable(text: str) -> str:
    """Replace lone surrogates (from broken documents), which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _open_cutter(tokenizer: str, cut: ResolvedOptions, _content_hash: str) -> "Cutter":
    from ingest_assets.stages.chunks.cutter import Cutter

    return Cutter(load_tokenizer(tokenizer), cut)


_CUTTERS = ObjectPool(_open_cutter)

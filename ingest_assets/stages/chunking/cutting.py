"""One document, cut: Docling's chunks, then what our options add to them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from docling_core.transforms.chunker import DocChunk
from docling_core.types.doc import DocItemLabel, DoclingDocument, TextItem

from ingest_assets.model.chunking import Cut
from ingest_assets.stages.chunking.chunker import open_chunker
from ingest_assets.stages.chunking.joining import joined
from ingest_assets.stages.chunking.overlapping import overlapped
from ingest_assets.stages.chunking.pieces import Piece, each_once, is_visible


class Cutter:
    """Cuts documents one after the other, with a warm tokenizer. Not for several threads at once."""

    def __init__(self, tokenizer: Any, cut: Cut) -> None:
        self._cut = cut
        self._chunker = open_chunker(
            tokenizer, cut.new_tokens, merge_peers=cut.merge_peers, tables=cut.tables
        )
        self.count: Callable[[str], int] = self._chunker.tokenizer.counter

    def pieces(self, document: DoclingDocument) -> tuple[list[Piece], int]:
        """The document's pieces in reading order, and how many were left out because nothing of them shows.

        At least one is kept of every document with text, whatever it looks like.
        """
        found = self._chunked(document) or self._of_plain_text(document)
        shown = [piece for piece in found if is_visible(piece.text)] or found
        pieces = joined(shown, self._cut, self.count)
        return overlapped(pieces, self._cut, self.count), len(found) - len(shown)

    def _chunked(self, document: DoclingDocument) -> list[Piece]:
        try:
            return [
                Piece(chunk.text, tuple(chunk.meta.headings or ()), self._items(chunk))
                for chunk in self._chunker.chunk(document)
                if isinstance(chunk, DocChunk)
            ]
        finally:
            self._chunker.serializer_provider.forget()

    def _items(self, chunk: DocChunk) -> Sequence[Any]:
        """Docling names an item once for each of its parts that it merged; its own form stays as it is."""
        items = chunk.meta.doc_items
        return items if self._cut.tables == "docling" else each_once(items)

    def _of_plain_text(self, document: DoclingDocument) -> list[Piece]:
        """Docling puts headings above the text below them, so a document of headings alone would have no
        chunk and could never be found."""
        plain, origins = DoclingDocument(name=document.name), {}
        for item, _level in document.iterate_items():
            if isinstance(item, TextItem) and item.text.strip():
                origins[plain.add_text(DocItemLabel.TEXT, item.text).self_ref] = item
        return [
            replace(piece, items=[origins[item.self_ref] for item in piece.items])
            for piece in self._chunked(plain)
        ]

"""Docling's HybridChunker, but that it does nothing twice."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast

import semchunk
from docling_core.transforms.chunker import BaseChunk, DocChunk
from docling_core.transforms.chunker.hybrid_chunker import HybridChunker
from docling_core.transforms.chunker.tokenizer.base import BaseTokenizer
from docling_core.transforms.serializer.base import (
    BaseDocSerializer,
    BaseSerializerProvider,
    BaseTableSerializer,
)
from docling_core.types.doc import DoclingDocument, RefItem, TableItem
from pydantic import ConfigDict

from ingest_assets.model.chunking import Tables
from ingest_assets.stages.chunking.capping import capped
from ingest_assets.stages.chunking.counting import open_counter
from ingest_assets.stages.chunking.packing import END_OF_VALUE, by_rows, by_values, read_markdown
from ingest_assets.stages.chunking.pieces import is_table_item
from ingest_assets.stages.chunking.room import Room
from ingest_assets.stages.chunking.rows import RowsWriter
from ingest_assets.stages.chunking.tables import TripletWriter, ValuesWriter, table_values, text_reader
from ingest_assets.stages.chunking.writing import Writer

# They would be written for every such chunk, one with its whole text; what came of it shows in the rows.
warnings.filterwarnings("ignore", "Headers and captions for this chunk are longer", UserWarning)
warnings.filterwarnings("ignore", "Chunks prefix is too long", UserWarning)


class CountingTokenizer(BaseTokenizer):
    """A tokenizer of transformers, counted by the quickest way that gives the same numbers."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    tokenizer: Any
    max_tokens: int
    counter: Any

    def count_tokens(self, text: str) -> int:
        return self.counter(text)

    def get_max_tokens(self) -> int:
        return self.max_tokens

    def get_tokenizer(self) -> Any:
        return self.tokenizer

    @contextmanager
    def counting_up_to(self, most_tokens: int) -> Iterator[None]:
        """Meanwhile greater counts are only known to be greater, which takes no longer for longer texts."""
        exact = self.counter
        self.counter = capped(exact, most_tokens)
        try:
            yield
        finally:
            self.counter = exact

    @cached_property
    def longest_token(self) -> int:
        """Characters of the vocabulary's longest entry, which semchunk wants to know for every text."""
        return max(map(len, self.tokenizer.get_vocab()))


class OneWriter(BaseSerializerProvider):
    """Gives the same writer to all who ask about the same document."""

    def __init__(self, tables: BaseTableSerializer) -> None:
        self._tables = tables
        self._writer: Writer | None = None

    def get_serializer(self, doc: DoclingDocument) -> BaseDocSerializer:
        if self._writer is None or self._writer.doc is not doc:
            self._writer = Writer.of(doc, self._tables)
        return self._writer

    def forget(self) -> None:
        """Let go of the document."""
        self._writer = None


class QuickChunker(HybridChunker):
    """The same chunks, sooner. Not for several threads at once."""

    tokenizer: CountingTokenizer
    serializer_provider: OneWriter
    tables: Tables = "docling"

    def contextualize(self, chunk: BaseChunk) -> str:
        if type(chunk) is not DocChunk:
            return super().contextualize(chunk)
        values = chunk.meta.__dict__
        above = [*(values["headings"] or ()), *(values["captions"] or ())]
        return self.delim.join([*above, chunk.text]) if above else chunk.text

    def _split_using_plain_text(
        self, doc_chunk: DocChunk, doc_serializer: BaseDocSerializer
    ) -> list[DocChunk]:
        if self._count_chunk_tokens(doc_chunk) <= self.max_tokens:
            return [doc_chunk]
        return super()._split_using_plain_text(doc_chunk, doc_serializer)

    def segment(
        self, doc_chunk: DocChunk, available_length: int, doc_serializer: BaseDocSerializer
    ) -> list[str]:
        """Of blanks alone comes one empty text, as Docling cannot do with none."""
        items, text = doc_chunk.meta.doc_items, doc_chunk.text
        if len(items) != 1 or not is_table_item(items[0]):
            return self._cut_text(text, available_length) or [""]
        if self.tables == "docling" and isinstance(items[0], TableItem):
            # A table is one long line, of which Docling asks again and again whether all that is left fits.
            with self.tokenizer.counting_up_to(available_length):
                return super().segment(doc_chunk, available_length, doc_serializer)
        return self._cut_table(text, items[0].self_ref, available_length, doc_serializer) or [""]

    def _cut_table(self, text: str, ref: str, most_tokens: int, writer: BaseDocSerializer) -> list[str]:
        room = Room(most_tokens, self.tokenizer.counter, self._cut_text)
        if self.tables == "rows":
            return self._cut_rows(text, room)
        if self.tables == "values":
            return self._cut_values(text, ref, room, writer)
        return room.cut_to_fit(text)

    def _cut_text(self, text: str, most_tokens: int) -> list[str]:
        def count(part: str) -> int:
            """A character is not cut any further, however many tokens it has."""
            found = self.tokenizer.count_tokens(part)
            return found if len(part) > 1 else min(found, most_tokens)

        cut = semchunk.chunkerify(
            count,
            chunk_size=most_tokens,
            max_token_chars=self.tokenizer.longest_token,
            memoize=False,  # would keep every text of every document
        )
        try:
            return cast(list[str], cut(text))
        except RecursionError:  # it goes one call deeper for every kind and length of blanks
            return cast(list[str], cut(" ".join(text.split())))

    def _cut_rows(self, text: str, room: Room) -> list[str]:
        table = read_markdown(text)
        return by_rows(table, room) if table is not None else room.cut_to_fit(text)

    def _cut_values(self, text: str, ref: str, room: Room, writer: BaseDocSerializer) -> list[str]:
        """Between values, which are read again: the text does not tell where one of many sentences ends."""
        doc = cast(Writer, writer).doc
        table = RefItem(cref=ref).resolve(doc)
        values = table_values(table.data, text_reader(doc, writer))
        before = text.removesuffix(END_OF_VALUE.join(values))
        return by_values(before, values, room) if values and before != text else room.cut_to_fit(text)


def open_chunker(tokenizer: Any, max_tokens: int, *, merge_peers: bool, tables: Tables) -> QuickChunker:
    """A chunker; `tables` says how those that do not fit are written and cut.

    Docling's own way repeats a header that its own writing of tables does not have, and begins each piece
    with the rule below it. With `values` that is left out: each value has its column's name already. `rows`
    and `values` are packed our own way, so that one long row, or a caption, does not break up the others.
    """
    written: dict[Tables, BaseTableSerializer]
    written = {"docling": TripletWriter(), "values": ValuesWriter(), "rows": RowsWriter()}
    return QuickChunker(
        tokenizer=CountingTokenizer(
            tokenizer=tokenizer, max_tokens=max_tokens, counter=open_counter(tokenizer)
        ),
        merge_peers=merge_peers,
        serializer_provider=OneWriter(written[tables]),
        tables=tables,
    )

"""Docling's HybridChunker, but that it does nothing twice."""

import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, takewhile
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
from docling_core.types.doc import DocItemLabel, DoclingDocument, RefItem, TableItem, TextItem
from pydantic import ConfigDict

from ingest_assets.settings.chunks import Cut, Tables
from ingest_assets.stages.chunks.fast_text import Writer
from ingest_assets.stages.chunks.tables import (
    END_OF_VALUE,
    Room,
    RowsWriter,
    TripletWriter,
    ValuesWriter,
    by_rows,
    by_values,
    table_values,
    text_reader,
)
from ingest_assets.stages.chunks.token_count import TokenCounter, capped, open_counter

DELIMITER = "\n"


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk while it is made: a text, the headings above it and the items it is made of. `repeated` is what
    it begins with that the chunk before it ended with."""

    text: str
    headings: tuple[str, ...]
    items: Sequence[Any]
    repeated: str = ""

    @property
    def contextualized(self) -> str:
        """What is embedded."""
        return DELIMITER.join((*self.headings, self.repeated + self.text))


def is_table(piece: Piece) -> bool:
    """True when it holds nothing but tables."""
    return all(map(is_table_item, piece.items))


def is_table_item(item: Any) -> bool:
    """By its reference: what Docling copied lost its kind."""
    return bool(item.self_ref.startswith("#/tables/"))


def each_once(items: Sequence[Any]) -> list[Any]:
    """The items in order, each where it first stands."""
    found: dict[str, Any] = {}
    for item in items:
        found.setdefault(item.self_ref, item)
    return list(found.values())


def is_visible(text: str) -> bool:
    """False when there is nothing to see: blanks, control and format characters."""
    return any(
        not character.isspace()
        # Of private and new characters only a font knows whether they show.
        and (character.isprintable() or unicodedata.category(character) in {"Co", "Cn"})
        for character in text
    )


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

    @cached_property
    def longest_token(self) -> int:
        """Characters of the vocabulary's longest entry, which semchunk wants to know for every text."""
        return max(map(len, self.tokenizer.get_vocab()))


class OneWriter(BaseSerializerProvider):
    """Gives the same writer to all who ask about the same document."""

    def __init__(self, tables: BaseTableSerializer) -> None:
        self._tables = tables
        self.writer: Writer | None = None

    def get_serializer(self, doc: DoclingDocument) -> BaseDocSerializer:
        if self.writer is None or self.writer.doc is not doc:
            self.writer = Writer.of(doc, self._tables)
        return self.writer


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
            # Meanwhile greater counts are only known to be greater, which takes no longer for longer texts.
            exact = self.tokenizer.counter
            self.tokenizer.counter = capped(exact, available_length)
            try:
                return super().segment(doc_chunk, available_length, doc_serializer)
            finally:
                self.tokenizer.counter = exact
        return self._cut_table(text, items[0].self_ref, available_length, doc_serializer) or [""]

    def _cut_table(self, text: str, ref: str, most_tokens: int, writer: BaseDocSerializer) -> list[str]:
        room = Room(most_tokens, self.tokenizer.counter, self._cut_text)
        if self.tables == "rows":
            return by_rows(text, room)
        if self.tables == "values":
            # They are read again: the text does not tell where one of many sentences ends.
            doc = cast(Writer, writer).doc
            values = table_values(RefItem(cref=ref).resolve(doc).data, text_reader(doc, writer))
            before = text.removesuffix(END_OF_VALUE.join(values))
            if values and before != text:
                return by_values(before, values, room)
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


# Chunks that are smaller than wanted, joined with their neighbours.


def joined(pieces: Sequence[Piece], cut: Cut, count: TokenCounter) -> list[Piece]:
    """Each piece below `min_tokens` with the one before or after it, where the two may be one.

    First under the same headings, up to what a chunk may hold. Then across soft barriers, which are a change
    of headings and either side of a table: only while what comes of it stays `soft_barrier_margin` below
    `max_tokens`, so that no chunk is filled up with the beginning of something else.
    """
    if not cut.min_tokens:
        return list(pieces)
    within = _passed(pieces, cut.min_tokens, cut.new_tokens, count, across=False)
    most = min(cut.new_tokens, cut.max_tokens - cut.soft_barrier_margin)
    return _passed(within, cut.min_tokens, most, count, across=True)


def _passed(
    pieces: Iterable[Piece], fewest: int, most: int, count: TokenCounter, *, across: bool
) -> list[Piece]:
    found: list[Piece] = []
    sizes: list[int] = []
    for piece in pieces:
        size = count(piece.contextualized)
        if found and min(size, sizes[-1]) < fewest:
            before = found[-1]
            is_barrier = before.headings != piece.headings or is_table(before) or is_table(piece)
            both = _both(before, piece) if is_barrier == across else None
            if both is not None and (sum_of_both := count(both.contextualized)) <= most:
                found[-1], sizes[-1] = both, sum_of_both
                continue
        found.append(piece)
        sizes.append(size)
    return found


def _both(before: Piece, after: Piece) -> Piece:
    """One below the headings they share; those that they do not share become part of the text."""
    shared = tuple(
        one
        for one, _ in takewhile(
            lambda pair: pair[0] == pair[1], zip(before.headings, after.headings, strict=False)
        )
    )
    kept = len(shared)
    texts = (*before.headings[kept:], before.text, *after.headings[kept:], after.text)
    return Piece(DELIMITER.join(texts), shared, each_once([*before.items, *after.items]))


# Chunks that begin with the words the one before them ended with.

_WORD = re.compile(r"\S+")
_LETTERS_PER_TOKEN = 40  # a text's end is looked for words in this many letters for each token wanted


def overlapped(pieces: Sequence[Piece], cut: Cut, count: TokenCounter) -> list[Piece]:
    """Each piece with the end of the one before it, where both stand under the same headings.

    Whole words, at most `overlap_tokens`, and never so many that a chunk grows too large. Tables neither give
    nor take: half a row means nothing.
    """
    if not cut.overlap_tokens:
        return list(pieces)
    return [*pieces[:1], *(_after(before, piece, cut, count) for before, piece in pairwise(pieces))]


def _after(before: Piece, piece: Piece, cut: Cut, count: TokenCounter) -> Piece:
    """A piece that begins with as much of the end of the one before it as there may be."""
    last, first = before.items[-1], piece.items[0]
    if before.headings != piece.headings or is_table_item(last) or is_table_item(first):
        return piece
    # Where a table ends within a piece is not known, so of one that holds any only the last line is taken.
    since = before.text.rfind(DELIMITER) + 1 if any(map(is_table_item, before.items)) else 0
    glue = " " if last.self_ref == first.self_ref else DELIMITER
    # Ends at word boundaries, the longest first; never all of the text, nor what is before `since`.
    far = max(since, len(before.text) - cut.overlap_tokens * _LETTERS_PER_TOKEN)
    starts = [word.start() for word in _WORD.finditer(before.text, far)]
    is_whole_line = 0 < far == since
    for start in starts[0 if is_whole_line else 1 :][-cut.overlap_tokens :]:
        end = before.text[start:].rstrip()
        longer = replace(piece, repeated=end + glue)
        if count(end) <= cut.overlap_tokens and count(longer.contextualized) <= cut.max_tokens:
            return longer
    return piece


class Cutter:
    """Cuts documents one after the other, with a warm tokenizer. Not for several threads at once.

    `cut.tables` says how tables that do not fit are written and cut. Docling's own way repeats a header that
    its own writing of tables does not have, and begins each piece with the rule below it. With `values` that
    is left out: each value has its column's name already. `rows` and `values` are packed our own way, so that
    one long row, or a caption, does not break up the others.
    """

    def __init__(self, tokenizer: Any, cut: Cut) -> None:
        self._cut = cut
        self.count = open_counter(tokenizer)
        writers: dict[Tables, BaseTableSerializer]
        writers = {"docling": TripletWriter(), "values": ValuesWriter(), "rows": RowsWriter()}
        self._chunker = QuickChunker(
            tokenizer=CountingTokenizer(tokenizer=tokenizer, max_tokens=cut.new_tokens, counter=self.count),
            merge_peers=cut.merge_peers,
            serializer_provider=OneWriter(writers[cut.tables]),
            tables=cut.tables,
        )

    def pieces(self, document: DoclingDocument) -> tuple[list[Piece], int]:
        """The document's pieces in reading order, and how many were left out because nothing of them shows.

        At least one is kept of every document with text, whatever it looks like.
        """
        found = self._chunked(document) or self._of_plain_text(document)
        shown = [piece for piece in found if is_visible(piece.text)] or found
        pieces = joined(shown, self._cut, self.count)
        return overlapped(pieces, self._cut, self.count), len(found) - len(shown)

    def _chunked(self, document: DoclingDocument) -> list[Piece]:
        """Docling names an item once for each of its parts that it merged; its own form stays as it is."""
        pieces = []
        try:
            for chunk in self._chunker.chunk(document):
                if isinstance(chunk, DocChunk):
                    items: Sequence[Any] = chunk.meta.doc_items
                    items = items if self._cut.tables == "docling" else each_once(items)
                    pieces.append(Piece(chunk.text, tuple(chunk.meta.headings or ()), items))
        finally:
            self._chunker.serializer_provider.writer = None  # it would keep the document
        return pieces

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

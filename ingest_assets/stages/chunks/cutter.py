"""Docling's HybridChunker without its repeated work, and the options that it does not have."""

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

from ingest_assets.settings.chunks import ResolvedOptions, Tables
from ingest_assets.stages.chunks.fast_text import Writer
from ingest_assets.stages.chunks.tables import (
    END_OF_VALUE,
    RowsWriter,
    TokenBudget,
    TripletWriter,
    ValuesWriter,
    split_by_rows,
    split_by_values,
    table_values,
    text_reader,
)
from ingest_assets.stages.chunks.token_count import TokenCounter, capped_counter, open_counter

DELIMITER = "\n"


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk in progress: its text, the headings above it and its items. `repeated` is the overlap with the
    end of the previous chunk; it comes before the text."""

    text: str
    headings: tuple[str, ...]
    items: Sequence[Any]
    repeated: str = ""

    @property
    def contextualized(self) -> str:
        """The text that is embedded."""
        return DELIMITER.join((*self.headings, self.repeated + self.text))


def is_table(piece: Piece) -> bool:
    """Return True if a piece consists of tables only."""
    return all(map(is_table_item, piece.items))


def is_table_item(item: Any) -> bool:
    """Return True for a table, by its reference: Docling's copies of items have lost their type."""
    return bool(item.self_ref.startswith("#/tables/"))


def unique_items(items: Sequence[Any]) -> list[Any]:
    """Return the items in order of their first occurrence."""
    by_ref: dict[str, Any] = {}
    for item in items:
        by_ref.setdefault(item.self_ref, item)
    return list(by_ref.values())


def is_visible(text: str) -> bool:
    """Return False for a text of blanks, control and format characters only."""
    return any(
        not character.isspace()
        # Private and unassigned characters count as visible: it depends on the font.
        and (character.isprintable() or unicodedata.category(character) in {"Co", "Cn"})
        for character in text
    )


# Docling logs these for every such chunk, one with its whole text. The stored rows already show the effect.
warnings.filterwarnings("ignore", "Headers and captions for this chunk are longer", UserWarning)
warnings.filterwarnings("ignore", "Chunks prefix is too long", UserWarning)


class CountingTokenizer(BaseTokenizer):
    """A tokenizer of transformers with a faster counter that returns the same counts."""

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
        """Length of the vocabulary's longest entry, which semchunk needs for every text."""
        return max(map(len, self.tokenizer.get_vocab()))


class SharedWriter(BaseSerializerProvider):
    """Returns the same writer for all requests about the same document."""

    def __init__(self, tables: BaseTableSerializer) -> None:
        self._tables = tables
        self.writer: Writer | None = None

    def get_serializer(self, doc: DoclingDocument) -> BaseDocSerializer:
        if self.writer is None or self.writer.doc is not doc:
            self.writer = Writer.of(doc, self._tables)
        return self.writer


class FastChunker(HybridChunker):
    """Makes the same chunks faster. Not thread-safe."""

    tokenizer: CountingTokenizer
    serializer_provider: SharedWriter
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
        """Cut one chunk's text. Blanks give one empty text, because Docling needs at least one."""
        items, text = doc_chunk.meta.doc_items, doc_chunk.text
        if len(items) != 1 or not is_table_item(items[0]):
            return self._cut_text(text, available_length) or [""]
        if self.tables == "docling" and isinstance(items[0], TableItem):
            # A table is one long line, and Docling repeatedly checks whether the whole remainder fits. A
            # capped counter stops counting at the limit, so its time does not grow with the text.
            exact = self.tokenizer.counter
            self.tokenizer.counter = capped_counter(exact, available_length)
            try:
                return super().segment(doc_chunk, available_length, doc_serializer)
            finally:
                self.tokenizer.counter = exact
        return self._cut_table(text, items[0].self_ref, available_length, doc_serializer) or [""]

    def _cut_table(self, text: str, ref: str, max_tokens: int, writer: BaseDocSerializer) -> list[str]:
        budget = TokenBudget(max_tokens, self.tokenizer.counter, self._cut_text)
        if self.tables == "rows":
            return split_by_rows(text, budget)
        if self.tables == "values":
            # Read the values again: the text does not show where a value of many sentences ends.
            doc = cast(Writer, writer).doc
            values = table_values(RefItem(cref=ref).resolve(doc).data, text_reader(doc, writer))
            before = text.removesuffix(END_OF_VALUE.join(values))
            if values and before != text:
                return split_by_values(before, values, budget)
        return budget.cut_to_fit(text)

    def _cut_text(self, text: str, max_tokens: int) -> list[str]:
        def count(part: str) -> int:
            """Count tokens; a single character always fits, because it cannot be cut."""
            tokens = self.tokenizer.count_tokens(part)
            return tokens if len(part) > 1 else min(tokens, max_tokens)

        cut = semchunk.chunkerify(
            count,
            chunk_size=max_tokens,
            max_token_chars=self.tokenizer.longest_token,
            memoize=False,  # would keep every text of every document
        )
        try:
            return cast(list[str], cut(text))
        except RecursionError:  # semchunk recurses once for every kind and length of blanks
            return cast(list[str], cut(" ".join(text.split())))


# Joining of small chunks.


def merge_small(pieces: Sequence[Piece], options: ResolvedOptions, count: TokenCounter) -> list[Piece]:
    """Join each piece below `min_tokens` with the one before or after it, where the result fits.

    The first pass joins under the same headings, up to the chunk's limit. The second joins across soft
    barriers (a change of headings, and both sides of a table), but only while the result stays
    `soft_barrier_margin` below `max_tokens`: chunks must not be padded with the start of another subject.
    """
    if not options.min_tokens:
        return list(pieces)
    within = _join(pieces, options.min_tokens, options.new_tokens, count, across=False)
    limit = min(options.new_tokens, options.max_tokens - options.soft_barrier_margin)
    return _join(within, options.min_tokens, limit, count, across=True)


def _join(
    pieces: Iterable[Piece], min_tokens: int, limit: int, count: TokenCounter, *, across: bool
) -> list[Piece]:
    joined: list[Piece] = []
    sizes: list[int] = []
    for piece in pieces:
        size = count(piece.contextualized)
        if joined and min(size, sizes[-1]) < min_tokens:
            before = joined[-1]
            is_barrier = before.headings != piece.headings or is_table(before) or is_table(piece)
            both = _both(before, piece) if is_barrier == across else None
            if both is not None and (size_of_both := count(both.contextualized)) <= limit:
                joined[-1], sizes[-1] = both, size_of_both
                continue
        joined.append(piece)
        sizes.append(size)
    return joined


def _both(before: Piece, after: Piece) -> Piece:
    """Join two pieces below the headings they share; other headings become part of the text."""
    shared = tuple(
        heading
        for heading, _ in takewhile(
            lambda pair: pair[0] == pair[1], zip(before.headings, after.headings, strict=False)
        )
    )
    depth = len(shared)
    texts = (*before.headings[depth:], before.text, *after.headings[depth:], after.text)
    return Piece(DELIMITER.join(texts), shared, unique_items([*before.items, *after.items]))


# Overlaps: chunks that begin with the last words of the chunk before.

_WORD = re.compile(r"\S+")
_CHARS_PER_TOKEN = 40  # words are searched in this many characters at the end of a text, per token of overlap


def add_overlaps(pieces: Sequence[Piece], options: ResolvedOptions, count: TokenCounter) -> list[Piece]:
    """Add the end of the previous piece to each piece under the same headings.

    An overlap has whole words, at most `overlap_tokens`, and fits into the chunk. There is none with tables:
    half a row means nothing.
    """
    if not options.overlap_tokens:
        return list(pieces)
    return [*pieces[:1], *(_add_overlap(before, piece, options, count) for before, piece in pairwise(pieces))]


def _add_overlap(before: Piece, piece: Piece, options: ResolvedOptions, count: TokenCounter) -> Piece:
    """Return the piece with the longest possible overlap."""
    last, first = before.items[-1], piece.items[0]
    if before.headings != piece.headings or is_table_item(last) or is_table_item(first):
        return piece
    # The text does not show where a table ends, so only the last line of a piece with a table is used.
    last_line = before.text.rfind(DELIMITER) + 1 if any(map(is_table_item, before.items)) else 0
    glue = " " if last.self_ref == first.self_ref else DELIMITER
    # Try word boundaries, the longest overlap first; never all of the text, nor anything before `last_line`.
    earliest = max(last_line, len(before.text) - options.overlap_tokens * _CHARS_PER_TOKEN)
    starts = [word.start() for word in _WORD.finditer(before.text, earliest)]
    is_whole_line = 0 < earliest == last_line
    for start in starts[0 if is_whole_line else 1 :][-options.overlap_tokens :]:
        end = before.text[start:].rstrip()
        longer = replace(piece, repeated=end + glue)
        if count(end) <= options.overlap_tokens and count(longer.contextualized) <= options.max_tokens:
            return longer
    return piece


class Cutter:
    """Cuts documents with a tokenizer that is loaded once. Not thread-safe.

    `options.tables` decides how tables that do not fit are written and cut. With `docling`, each piece of a
    table begins with the header line or its rule, as in Docling, although its triplets need none; with
    `values` it does not, because each value has its column's name. `rows` and `values` are packed by our own
    code, so that one long row, or a caption, does not break up the others.
    """

    def __init__(self, tokenizer: Any, options: ResolvedOptions) -> None:
        self._options = options
        self.count = open_counter(tokenizer)
        writers: dict[Tables, BaseTableSerializer]
        writers = {"docling": TripletWriter(), "values": ValuesWriter(), "rows": RowsWriter()}
        self._chunker = FastChunker(
            tokenizer=CountingTokenizer(
                tokenizer=tokenizer, max_tokens=options.new_tokens, counter=self.count
            ),
            merge_peers=options.merge_peers,
            serializer_provider=SharedWriter(writers[options.tables]),
            tables=options.tables,
        )

    def pieces(self, document: DoclingDocument) -> tuple[list[Piece], int]:
        """Return the document's pieces in reading order, and how many were left out as invisible.

        A document with text has at least one piece, even if all are invisible.
        """
        chunks = self._chunk(document) or self._chunk_plain_text(document)
        visible = [piece for piece in chunks if is_visible(piece.text)] or chunks
        pieces = merge_small(visible, self._options, self.count)
        return add_overlaps(pieces, self._options, self.count), len(chunks) - len(visible)

    def _chunk(self, document: DoclingDocument) -> list[Piece]:
        """Run Docling's chunker. It lists an item once per merged part; only `docling` tables keep these."""
        pieces = []
        try:
            for chunk in self._chunker.chunk(document):
                if isinstance(chunk, DocChunk):
                    items: Sequence[Any] = chunk.meta.doc_items
                    items = items if self._options.tables == "docling" else unique_items(items)
                    pieces.append(Piece(chunk.text, tuple(chunk.meta.headings or ()), items))
        finally:
            self._chunker.serializer_provider.writer = None  # it would keep the document in memory
        return pieces

    def _chunk_plain_text(self, document: DoclingDocument) -> list[Piece]:
        """Chunk all texts as paragraphs.

        Docling makes no chunk from a document that consists only of headings, so a search could not find it.
        """
        plain, origins = DoclingDocument(name=document.name), {}
        for item, _level in document.iterate_items():
            if isinstance(item, TextItem) and item.text.strip():
                origins[plain.add_text(DocItemLabel.TEXT, item.text).self_ref] = item
        return [
            replace(piece, items=[origins[item.self_ref] for item in piece.items])
            for piece in self._chunk(plain)
        ]

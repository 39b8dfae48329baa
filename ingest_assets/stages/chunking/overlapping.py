"""Chunks that begin with the words the one before them ended with."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from ingest_assets.model.chunking import Cut
from ingest_assets.stages.chunking.counting import TokenCounter
from ingest_assets.stages.chunking.pieces import DELIMITER, Piece, is_table_item

_WORD = re.compile(r"\S+")
_LETTERS_PER_TOKEN = 40


def overlapped(pieces: Sequence[Piece], cut: Cut, count: TokenCounter) -> list[Piece]:
    """Each piece with the end of the one before it, where both stand under the same headings.

    Whole words, at most `overlap_tokens`, and never so many that a chunk grows too large. Tables neither give
    nor take: half a row means nothing.
    """
    if not cut.overlap_tokens:
        return list(pieces)
    return [*pieces[:1], *(_after(before, piece, cut, count) for before, piece in pairwise(pieces))]


def _after(before: Piece, piece: Piece, cut: Cut, count: TokenCounter) -> Piece:
    last, first = before.items[-1], piece.items[0]
    if before.headings != piece.headings or is_table_item(last) or is_table_item(first):
        return piece
    goes_on = last.self_ref == first.self_ref
    for end in _ends(before.text, cut.overlap_tokens, _after_tables(before)):
        longer = replace(piece, repeated=end + (" " if goes_on else DELIMITER))
        if count(end) <= cut.overlap_tokens and count(longer.contextualized) <= cut.max_tokens:
            return longer
    return piece


def _after_tables(piece: Piece) -> int:
    """Where the last line begins of a piece that holds a table, as where the table ends is not known; else
    the start."""
    return piece.text.rfind(DELIMITER) + 1 if any(map(is_table_item, piece.items)) else 0


def _ends(text: str, most_words: int, since: int) -> Iterator[str]:
    """Ends of a text at word boundaries, the longest first; never all of it, nor what is before `since`."""
    far = max(since, len(text) - most_words * _LETTERS_PER_TOKEN)
    starts = [word.start() for word in _WORD.finditer(text, far)]
    is_whole = 0 < far == since
    return (text[start:].rstrip() for start in starts[0 if is_whole else 1 :][-most_words:])

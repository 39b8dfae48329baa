"""Chunks that are smaller than wanted, joined with their neighbours."""

from collections.abc import Iterable, Sequence
from itertools import takewhile

from ingest_assets.model.chunking import Cut
from ingest_assets.stages.chunking.counting import TokenCounter
from ingest_assets.stages.chunking.pieces import DELIMITER, Piece, each_once, is_table


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
        is_wanted = bool(found) and min(size, sizes[-1]) < fewest and _is_barrier(found[-1], piece) == across
        both = _both(found[-1], piece) if is_wanted else piece
        if is_wanted and (sum_of_both := count(both.contextualized)) <= most:
            found[-1], sizes[-1] = both, sum_of_both
        else:
            found.append(piece)
            sizes.append(size)
    return found


def _is_barrier(before: Piece, after: Piece) -> bool:
    return before.headings != after.headings or is_table(before) or is_table(after)


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

"""Term counts: what lexical search needs of a text.

Texts are counted many at a time, by Arrow and NumPy: they are cut where ASCII already ends a word, and the
analysis sees each distinct piece once. That is no approximation: no rule of the analysis looks beyond such a
cut, but for U+0338, which makes another character of `<`, `=` or `>` before it.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest_assets.embedders.terms import Analysis

_MOST = 2**16 - 1
_CUTS = bytes(
    byte if byte >= 128 or chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(256)
).lower()
_LOOKS_BACK = "\u0338".encode()
_STRINGS = pa.list_(pa.field("element", pa.string(), nullable=False))
_COUNTS = pa.list_(pa.field("element", pa.uint16(), nullable=False))


@dataclass(frozen=True, slots=True)
class TermCounts:
    """One row per text: its distinct terms in code-point order, how often each occurs, how many in all."""

    terms: pa.ListArray
    counts: pa.ListArray
    length: pa.Array


def count_terms(texts: pa.Array, analysis: Analysis) -> TermCounts:
    """The term counts of a column of texts."""
    pieces, of_text = _pieces(texts)
    vocabulary, terms, of_text = _ranked(pieces, of_text, analysis)
    rows, ranks, counts = _counted(of_text, terms, len(vocabulary))
    offsets = pa.array(np.searchsorted(rows, np.arange(len(texts) + 1)).astype(np.int32))
    few = pa.array(np.minimum(counts, _MOST).astype(np.uint16))
    return TermCounts(
        pa.ListArray.from_arrays(offsets, vocabulary.take(pa.array(ranks)), type=_STRINGS),
        pa.ListArray.from_arrays(offsets, few, type=_COUNTS),
        pa.array(np.bincount(of_text, minlength=len(texts)).astype(np.int32)),
    )


def _counted(
    of_text: np.ndarray, terms: np.ndarray, terms_in_all: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which text has which term, in order, and how often."""
    keys = of_text * max(terms_in_all, 1) + terms
    if len(keys) and keys[-1] < 2**31:
        keys = keys.astype(np.int32)  # sorted in a fraction of the time
    keys.sort()
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(firsts, append=len(keys))
    return *np.divmod(keys[firsts], max(terms_in_all, 1)), counts


def _pieces(texts: pa.Array) -> tuple[pa.DictionaryArray, np.ndarray]:
    """Every text cut where ASCII ends a word, ASCII letters small; and which text each piece is of."""
    cut = pc.ascii_split_whitespace(_with_cuts(texts))
    of_text = np.repeat(np.arange(len(texts)), cut.value_lengths().to_numpy(zero_copy_only=False))
    return cut.flatten().dictionary_encode(), of_text


def _with_cuts(texts: pa.Array) -> pa.StringArray:
    """The texts with a space for each ASCII character that is of no word; they keep their lengths."""
    texts = texts.cast(pa.string())
    data, offsets = _bytes_of(texts)
    if _LOOKS_BACK in data:
        normal = pa.array([unicodedata.normalize("NFKC", text) for text in texts.to_pylist()], pa.string())
        data, offsets = _bytes_of(normal)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(data.translate(_CUTS)))


def _bytes_of(texts: pa.StringArray) -> tuple[bytes, np.ndarray]:
    """All texts in a row, and where each begins."""
    if len(texts) == 0:
        return b"", np.zeros(1, np.int32)
    _, offsets_buffer, data = texts.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32, len(texts) + 1, texts.offset * 4)
    first, last = int(offsets[0]), int(offsets[-1])
    return data.slice(first, last - first).to_pybytes() if last > first else b"", offsets - np.int32(first)


def _ranked(
    pieces: pa.DictionaryArray, of_text: np.ndarray, analysis: Analysis
) -> tuple[pa.StringArray, np.ndarray, np.ndarray]:
    """The terms there are, in order; and of every occurrence which of them it is, and of which text."""
    listed, ids = pieces.dictionary, pieces.indices.to_numpy()
    is_term = pc.and_(pc.string_is_ascii(listed), pc.greater(pc.binary_length(listed), 0))
    if not analysis.is_plain():
        is_term = pa.array(np.zeros(len(listed), bool))
    others = analysis.terms_of_pieces(listed.filter(pc.invert(is_term)).to_pylist())
    flat = pa.array(list(chain.from_iterable(others)), pa.string())
    found = pa.concat_arrays([listed.filter(is_term), flat]).dictionary_encode()
    order = pc.sort_indices(found.dictionary)
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    ranks = rank[found.indices.to_numpy()]
    terms, of_text = _expanded(ids, is_term.to_numpy(zero_copy_only=False), others, ranks, of_text)
    return found.dictionary.take(order), terms, of_text


def _expanded(
    ids: np.ndarray,
    is_term: np.ndarray,
    others: Sequence[tuple[str, ...]],
    ranks: np.ndarray,
    of_text: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The terms of each piece in the place of the piece: often one, sometimes none, in Chinese many.

    `ranks` are those of the pieces that are terms, followed by those of what the others hold."""
    sizes = np.ones(len(is_term), np.int64)
    sizes[~is_term] = [len(terms) for terms in others]
    ends = np.cumsum(sizes[~is_term])
    starts = np.empty(len(is_term), np.int64)
    starts[is_term] = np.arange(len(ranks) - sizes[~is_term].sum())
    starts[~is_term] = len(ranks) - (ends[-1] if len(ends) else 0) + ends - sizes[~is_term]
    if sizes.max(initial=0) <= 1:
        of_piece = np.append(ranks, 0)[starts]
        if sizes.min(initial=1) == 1:
            return of_piece[ids], of_text
        has_term = (sizes == 1)[ids]
        return of_piece[ids[has_term]], of_text[has_term]
    repeats = sizes[ids]
    within = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return ranks[np.repeat(starts[ids], repeats) + within], np.repeat(of_text, repeats)

"""Term counts: what lexical search needs of a text."""

import unicodedata
from collections import Counter
from typing import Any

import regex

# Marks belong to the letter before them (Hindi, Thai, pointed Arabic), joiners to the word around them.
_TERM = regex.compile(r"\w[\w\p{M}\u200c\u200d]*")
_MOST = 2**16 - 1


def term_counts(text: str, min_chars: int = 1) -> dict[str, Any]:
    """Terms in code-point order with their counts, and how many occurrences there are in all."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    counts = Counter(term for term in _TERM.findall(folded) if len(term) >= min_chars)
    terms = sorted(counts)
    return {
        "terms": terms,
        "counts": [min(counts[term], _MOST) for term in terms],
        "length": sum(counts.values()),
    }

"""The judgement of one document by itself: all checks except deduplication, and the signature by which near
duplicates are found."""

import functools
import hashlib
from dataclasses import dataclass

from ingest_assets.settings.admission import (
    SIZE_CLASSES,
    UNDETERMINED,
    AdmissionOptions,
    NearDuplicateOptions,
    QualityOptions,
    SizeClass,
    TierReason,
)
from ingest_assets.stages.admission.document_text import DocumentText, normal_text, text_hash, words_of
from ingest_assets.stages.admission.facts import Details, Facts, details_of
from ingest_assets.stages.admission.garbled import glyph_share, mojibake_share
from ingest_assets.stages.admission.rules import Rejection, fast_filter, structural_filter

# Text quality: a score with its parts. It rejects nothing, but decides the tier.

# Ordinary prose has these shares of letters and of running text; more is not better.
_LETTERS = 0.7
_RUNNING = 0.6
_WEIGHTS = {
    "clean": 0.25,
    "letters": 0.15,
    "running": 0.2,
    "variety": 0.15,
    "structure": 0.1,
    "language": 0.15,
}


@dataclass(frozen=True, slots=True)
class Quality:
    """Score and parts, each from 0 to 1, rounded so that all platforms agree."""

    score: float
    clean: float  # free of lost characters, wrong encodings and glyph numbers
    letters: float  # letters, not digits and symbols
    running: float  # sentences, tables and code, not labels and links
    variety: float  # lines that are not repeated
    structure: float  # a title or headings, and blocks below them
    language: float  # a recognized language


def quality_of(facts: Facts) -> Quality:
    """Return the parts and their weighted mean as the score."""
    document = facts.document
    has_name = bool(document.title or document.headings)
    has_body = sum(bool(block.text.strip()) for block in document.blocks) >= 3
    parts = {
        "clean": 1 - 2 * facts.share("corrupt") - mojibake_share(facts) - glyph_share(facts),
        "letters": facts.share("letter") / _LETTERS,
        "running": facts.substance / facts.meaningful / _RUNNING if facts.meaningful else 0.0,
        "variety": 1 - facts.repeated_share if facts.meaningful else 0.0,
        "structure": (has_name + has_body) / 2,
        "language": 0.5 if facts.detected.language == UNDETERMINED else facts.detected.score,
    }
    parts = {name: round(min(1.0, max(0.0, part)), 3) for name, part in parts.items()}
    return Quality(round(sum(_WEIGHTS[name] * part for name, part in parts.items()), 3), **parts)


@dataclass(frozen=True, slots=True)
class Judgement:
    """All measurements of one document. Both filters run, even if the first one rejects."""

    fast_filter: Rejection | None
    structural_filter: Rejection | None
    text_hash: str
    chars: int
    meaningful_chars: int
    language: str
    language_score: float
    entropy: float
    quality: Quality
    size_class: SizeClass
    tier_reasons: tuple[TierReason, ...]
    details: Details


def judge(document: DocumentText, options: AdmissionOptions) -> Judgement:
    """Judge a document. Pure: the same document and options give the same judgement on any machine."""
    facts = Facts(document)
    quality, size = quality_of(facts), size_class(document.chars)
    return Judgement(
        fast_filter=fast_filter(facts, options),
        structural_filter=structural_filter(facts, options.structure),
        text_hash=text_hash(document.text),
        chars=document.chars,
        meaningful_chars=facts.meaningful,
        language=facts.detected.language,
        language_score=facts.detected.score,
        entropy=facts.entropy,
        quality=quality,
        size_class=size,
        tier_reasons=tier_reasons(facts, quality, size, options.quality),
        details=details_of(document, facts.detected.language),
    )


def size_class(chars: int) -> SizeClass:
    """Return the size class by the number of characters that are not whitespace."""
    return next((name for name, min_chars in SIZE_CLASSES if chars >= min_chars), "small")


def tier_reasons(
    facts: Facts, quality: Quality, size: SizeClass, options: QualityOptions
) -> tuple[TierReason, ...]:
    """Return the reasons why a document is not in the first tier."""
    document = facts.document
    # It has no title and no headings, or little text, absolutely or for its number of pages.
    is_isolated = (
        not (document.title or document.headings)
        or facts.meaningful < options.isolated_chars
        or facts.meaningful < options.isolated_chars_per_page * document.pages
    )
    applies: dict[TierReason, bool] = {
        "large": size in ("large", "huge"),
        "isolated": is_isolated,
        "low_quality": quality.score < options.min_score,
    }
    return tuple(reason for reason, is_true in applies.items() if is_true)


# Near duplicates: a short signature of a text, keys to find candidates, and the similarity of two signatures.
#
# Signatures are computed by datasketch. Scheme, seed and hash function are fixed here, so that signatures of
# other processes, machines and versions stay comparable.

_SEED = 1
_SCHEME = "affine32"
_VALUE_BYTES = 4
# Shingles per call: the memory of a call is this number times the permutations.
_BLOCK = 8192
# Two texts at the threshold share a key with at least this probability.
_RECALL = 0.99


def signature(text: str, options: NearDuplicateOptions) -> bytes | None:
    """Return the MinHash of a text's shingles, four bytes per permutation; None for a text without words."""
    from datasketch import MinHash

    ordered = sorted(shingles(text, options.shingle_words))
    if not ordered:
        return None
    sketch = MinHash(num_perm=options.permutations, seed=_SEED, scheme=_SCHEME, hashfunc=_hash32)
    for start in range(0, len(ordered), _BLOCK):
        sketch.update_batch(ordered[start : start + _BLOCK])
    return sketch.hashvalues.astype("<u4").tobytes()


def shingles(text: str, words: int) -> set[str]:
    """Return all runs of this many words; a shorter text is one shingle."""
    tokens = words_of(normal_text(text))
    if not tokens:
        return set()
    return {" ".join(tokens[start : start + words]) for start in range(max(1, len(tokens) - words + 1))}


def similarity(left: bytes, right: bytes) -> float:
    """Estimate the share of shingles that two texts have in common. Both signatures have the same length."""
    pairs = zip(memoryview(left).cast("I"), memoryview(right).cast("I"), strict=True)
    return round(sum(a == b for a, b in pairs) / (len(left) // _VALUE_BYTES), 4)


def band_keys(signature: bytes, options: NearDuplicateOptions) -> tuple[int, ...]:
    """Return keys to look up candidates: two texts at the threshold almost always share one.

    Each key fits a signed 64-bit column. A shared key makes a candidate; `similarity` decides.
    """
    rows = rows_per_band(options.threshold, options.permutations)
    size = rows * _VALUE_BYTES
    bands = [signature[start : start + size] for start in range(0, len(signature) - size + 1, size)]
    digests = (
        hashlib.blake2b(number.to_bytes(2, "little") + band, digest_size=8).digest()
        for number, band in enumerate(bands)
    )
    return tuple(int.from_bytes(digest, "little") >> 1 for digest in digests)


@functools.cache
def rows_per_band(threshold: float, permutations: int) -> int:
    """Return the most values per key that still find almost all texts at the threshold."""
    for rows in range(permutations, 1, -1):
        if 1 - (1 - threshold**rows) ** (permutations // rows) >= _RECALL:
            return rows
    return 1


def _hash32(shingle: str) -> int:
    encoded = shingle.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=_VALUE_BYTES).digest(), "little")

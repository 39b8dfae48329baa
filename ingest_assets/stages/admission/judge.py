"""The verdict on one document by itself: every check but the one that needs the other documents, and the
signature by which those find near duplicates."""

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
from ingest_assets.stages.admission.facts import Details, Facts, details_of
from ingest_assets.stages.admission.garbled import glyph_share, mojibake_share
from ingest_assets.stages.admission.reading import Reading, normal_text, text_hash, words_of
from ingest_assets.stages.admission.rules import Finding, fast_filter, structural_filter

# How good a text is: a score with its parts. Nothing is rejected by it; it decides the tier.

# Ordinary prose has this share of letters, and of text that runs; more is not better.
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
    """Each part from 0 to 1, rounded so that every platform says the same."""

    score: float
    clean: float  # free of lost characters, wrong encodings and glyph numbers
    letters: float  # letters rather than digits and symbols
    running: float  # sentences, tables and code rather than labels and links
    variety: float  # lines that were not there before
    structure: float  # a title or headings, and blocks below them
    language: float  # a language that is recognised


def quality_of(facts: Facts) -> Quality:
    """The score is the weighted mean of the parts."""
    reading = facts.reading
    has_name = bool(reading.title or reading.headings)
    has_body = sum(bool(block.text.strip()) for block in reading.blocks) >= 3
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
    """What is known about a document by itself. Both filters were asked, whatever the first one found."""

    fast_filter: Finding | None
    structural_filter: Finding | None
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


def judge(reading: Reading, options: AdmissionOptions) -> Judgement:
    """Pure and repeatable: the same reading and options give the same judgement everywhere."""
    facts = Facts(reading)
    quality, size = quality_of(facts), size_class(reading.chars)
    return Judgement(
        fast_filter=fast_filter(facts, options),
        structural_filter=structural_filter(facts, options.structure),
        text_hash=text_hash(reading.text),
        chars=reading.chars,
        meaningful_chars=facts.meaningful,
        language=facts.detected.language,
        language_score=facts.detected.score,
        entropy=facts.entropy,
        quality=quality,
        size_class=size,
        tier_reasons=tier_reasons(facts, quality, size, options.quality),
        details=details_of(reading, facts.detected.language),
    )


def size_class(chars: int) -> SizeClass:
    """By characters that are not whitespace."""
    return next((name for name, least in SIZE_CLASSES if chars >= least), "small")


def tier_reasons(
    facts: Facts, quality: Quality, size: SizeClass, options: QualityOptions
) -> tuple[TierReason, ...]:
    """Why a document is not clean and cheap."""
    reading = facts.reading
    # Nothing says what it is about, or it says hardly anything, by itself or for its number of pages.
    is_isolated = (
        not (reading.title or reading.headings)
        or facts.meaningful < options.isolated_chars
        or facts.meaningful < options.isolated_chars_per_page * reading.pages
    )
    holds: dict[TierReason, bool] = {
        "large": size in ("large", "huge"),
        "isolated": is_isolated,
        "low_quality": quality.score < options.min_score,
    }
    return tuple(reason for reason, holds_here in holds.items() if holds_here)


# Near duplicates: a short signature of a text, keys to find candidates by, and how alike two signatures are.
#
# Signatures are made with datasketch; its scheme, its seed and its hash are stated here, so that signatures
# from other processes, machines and versions stay comparable.

_SEED = 1
_SCHEME = "affine32"
_VALUE_BYTES = 4
# Shingles per call: a call's memory is this many times the permutations.
_BLOCK = 8192
# Two texts at the threshold share a key with this probability at least.
_RECALL = 0.99


def signature(text: str, options: NearDuplicateOptions) -> bytes | None:
    """The MinHash of a text's shingles, four bytes a permutation; none for a text without words."""
    from datasketch import MinHash

    found = sorted(shingles(text, options.shingle_words))
    if not found:
        return None
    sketch = MinHash(num_perm=options.permutations, seed=_SEED, scheme=_SCHEME, hashfunc=_hash32)
    for start in range(0, len(found), _BLOCK):
        sketch.update_batch(found[start : start + _BLOCK])
    return sketch.hashvalues.astype("<u4").tobytes()


def shingles(text: str, words: int) -> set[str]:
    """All runs of so many words, without order; a shorter text is one shingle."""
    tokens = words_of(normal_text(text))
    if not tokens:
        return set()
    return {" ".join(tokens[at : at + words]) for at in range(max(1, len(tokens) - words + 1))}


def similarity(one: bytes, other: bytes) -> float:
    """The estimated share of shingles that two texts have in common. Both signatures are of one length."""
    pairs = zip(memoryview(one).cast("I"), memoryview(other).cast("I"), strict=True)
    return round(sum(left == right for left, right in pairs) / (len(one) // _VALUE_BYTES), 4)


def band_keys(signature: bytes, options: NearDuplicateOptions) -> tuple[int, ...]:
    """Keys to look up candidates by: two texts as alike as the threshold nearly always share one.

    Each fits a signed 64-bit column. A shared key makes a candidate; `similarity` decides.
    """
    rows = rows_per_band(options.threshold, options.permutations)
    size = rows * _VALUE_BYTES
    bands = [signature[at : at + size] for at in range(0, len(signature) - size + 1, size)]
    digests = (
        hashlib.blake2b(number.to_bytes(2, "little") + band, digest_size=8).digest()
        for number, band in enumerate(bands)
    )
    return tuple(int.from_bytes(digest, "little") >> 1 for digest in digests)


@functools.cache
def rows_per_band(threshold: float, permutations: int) -> int:
    """As many values in a key as still find nearly all texts at the threshold; fewer make more candidates."""
    for rows in range(permutations, 1, -1):
        if 1 - (1 - threshold**rows) ** (permutations // rows) >= _RECALL:
            return rows
    return 1


def _hash32(shingle: str) -> int:
    encoded = shingle.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=_VALUE_BYTES).digest(), "little")

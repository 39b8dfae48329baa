"""One document's judgement: every mark but the one that needs the other documents."""

from dataclasses import dataclass

from ingest_assets.model.admission import (
    SIZE_CLASSES,
    AdmissionOptions,
    QualityOptions,
    SizeClass,
    Tier,
    TierReason,
)
from ingest_assets.stages.judging.details import Details, details_of
from ingest_assets.stages.judging.facts import Facts
from ingest_assets.stages.judging.fast import fast_filter
from ingest_assets.stages.judging.finding import Finding
from ingest_assets.stages.judging.normal import text_hash
from ingest_assets.stages.judging.quality import Quality, quality_of
from ingest_assets.stages.judging.reading import Reading
from ingest_assets.stages.judging.structure import structural_filter

_LARGE: tuple[SizeClass, ...] = ("large", "huge")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known about a document by itself. Both filters have spoken, whatever the first one said."""

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
    tier: Tier
    tier_reasons: tuple[TierReason, ...]
    details: Details


def judge(reading: Reading, options: AdmissionOptions) -> Judgement:
    """Pure and repeatable: the same reading and options give the same judgement everywhere."""
    facts = Facts(reading)
    quality, size = quality_of(facts), size_class(reading.chars)
    reasons = tier_reasons(facts, quality, size, options.quality)
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
        tier="TIER1" if reasons else "TIER0",
        tier_reasons=reasons,
        details=details_of(reading, facts.detected.language),
    )


def size_class(chars: int) -> SizeClass:
    """By characters that are not whitespace."""
    return next((name for name, least in SIZE_CLASSES if chars >= least), "small")


def tier_reasons(
    facts: Facts, quality: Quality, size: SizeClass, options: QualityOptions
) -> tuple[TierReason, ...]:
    """Why a document is not clean and cheap."""
    holds: dict[TierReason, bool] = {
        "large": size in _LARGE,
        "isolated": is_isolated(facts, options),
        "low_quality": quality.score < options.min_score,
    }
    return tuple(reason for reason, holds_here in holds.items() if holds_here)


def is_isolated(facts: Facts, options: QualityOptions) -> bool:
    """Nothing says what it is about, or it says hardly anything, by itself or for its number of pages."""
    reading = facts.reading
    is_nameless = not reading.title and not reading.headings
    is_little = facts.meaningful < options.isolated_chars
    return is_nameless or is_little or facts.meaningful < options.isolated_chars_per_page * reading.pages

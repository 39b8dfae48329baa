"""The fast filter: size and language."""

from ingest_assets.model.admission import AdmissionOptions, LanguageOptions
from ingest_assets.stages.judging.facts import Facts
from ingest_assets.stages.judging.finding import Finding, above, below
from ingest_assets.stages.judging.language import Detected, is_language


def fast_filter(facts: Facts, options: AdmissionOptions) -> Finding | None:
    """The first objection to a document's size or language."""
    return (
        too_short(facts, options)
        or too_long(facts, options)
        or language_uncertain(facts.detected, options.language)
        or language_not_allowed(facts.detected, options.language)
    )


def too_short(facts: Facts, options: AdmissionOptions) -> Finding | None:
    """Too few letters and digits, and no whole sentence. A text with none at all is empty, not short."""
    limit = options.min_meaningful_chars
    if not 0 < facts.meaningful < limit:
        return None
    says_something = options.short_text_words and facts.different_words >= options.short_text_words
    return None if says_something else below("too_short", facts.meaningful, limit)


def too_long(facts: Facts, options: AdmissionOptions) -> Finding | None:
    """More text than anybody wants in one document."""
    return above("too_long", facts.visible, options.max_chars)


def language_uncertain(detected: Detected, options: LanguageOptions) -> Finding | None:
    """Only certain languages are wanted, and this one is not certain."""
    if not options.allowed or options.uncertain == "admit":
        return None
    return below("language_uncertain", detected.score, options.min_confidence)


def language_not_allowed(detected: Detected, options: LanguageOptions) -> Finding | None:
    """Certainly in a language that is not wanted."""
    if not options.allowed or is_language(detected.language, options.allowed):
        return None
    if detected.score < options.min_confidence:
        return None
    return Finding("language_not_allowed", detected.score, options.min_confidence)

"""How good a text is: a score with its parts. Nothing is rejected by it; it decides the tier."""

from dataclasses import dataclass

from ingest_assets.model.admission import UNDETERMINED
from ingest_assets.stages.judging.facts import Facts
from ingest_assets.stages.judging.text_rules import glyph_share, mojibake_share

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
    parts = {
        "clean": 1 - 2 * facts.share("corrupt") - mojibake_share(facts) - glyph_share(facts),
        "letters": facts.share("letter") / _LETTERS,
        "running": facts.substance / facts.meaningful / _RUNNING if facts.meaningful else 0.0,
        "variety": 1 - facts.repeated_share if facts.meaningful else 0.0,
        "structure": _structure(facts),
        "language": 0.5 if facts.detected.language == UNDETERMINED else facts.detected.score,
    }
    parts = {name: round(min(1.0, max(0.0, part)), 3) for name, part in parts.items()}
    return Quality(round(sum(_WEIGHTS[name] * part for name, part in parts.items()), 3), **parts)


def _structure(facts: Facts) -> float:
    reading = facts.reading
    has_name = bool(reading.title or reading.headings)
    has_body = sum(bool(block.text.strip()) for block in reading.blocks) >= 3
    return (has_name + has_body) / 2

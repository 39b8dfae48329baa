"""The structural filter: every rule about one document's text, in the order in which they are asked."""

from collections.abc import Callable

from ingest_assets.model.admission import StructureOptions
from ingest_assets.stages.judging import filler_rules, page_rules, text_rules
from ingest_assets.stages.judging.facts import Facts
from ingest_assets.stages.judging.finding import Finding

Rule = Callable[[Facts, StructureOptions], Finding | None]

RULES: tuple[Rule, ...] = (
    text_rules.corrupt_text,
    text_rules.empty,
    text_rules.entropy_too_low,
    text_rules.entropy_too_high,
    text_rules.garbled_encoding,
    text_rules.garbled_glyphs,
    text_rules.garbled_words,
    text_rules.too_many_symbols,
    text_rules.too_many_digits,
    page_rules.error_page,
    page_rules.login_page,
    page_rules.boilerplate_page,
    filler_rules.template_page,
    filler_rules.metadata_only,
    filler_rules.navigation_page,
    filler_rules.link_list,
    text_rules.repeated_lines,
)


def structural_filter(facts: Facts, limits: StructureOptions) -> Finding | None:
    """The first rule's objection, or none."""
    return next((finding for rule in RULES if (finding := rule(facts, limits))), None)

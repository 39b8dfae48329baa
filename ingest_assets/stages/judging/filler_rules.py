"""Rules about text that is no content: templates to be filled in, bare metadata, menus, lists of links."""

import re
from collections.abc import Iterator

from ingest_assets.model.admission import Reason, StructureOptions
from ingest_assets.stages.judging.facts import Facts, Unit
from ingest_assets.stages.judging.finding import Finding, mostly
from ingest_assets.stages.judging.labels import FILLER_WORDS, METADATA_KEYS, PLACEHOLDERS
from ingest_assets.stages.judging.normal import as_label, meaningful_chars, plain, words_of
from ingest_assets.stages.judging.page_rules import furniture, is_menu_entry

_FILLER = ("ipsum", "Ipsum", "IPSUM", "adipiscing", "sadipscing")
_FILLER_SHARE = 0.6
_OPEN_FIELD = re.compile(
    r"\{\{[^{}]{0,80}\}\}|\$\{[^{}]{1,60}\}|<%.{1,60}?%>|%[A-Z_]{3,}%|_{4,}|\bx{4,}\b"
    r"|\b(?:todo|tbd|tba|tbc|fixme)\b"
    r"|[\[<](?:your|insert|enter|add|type|describe|placeholder|company|client|customer|recipient|sender"
    r"|(?:first |last |full )?name|street|address|city|phone|email|website|date|title|subject|job|project"
    r"|department|amount|signature|logo)\b[^\[\]<>]{0,50}[\]>]",
    re.IGNORECASE,
)
_OPEN_MARKS = ("{", "<", "[", "%", "____", "xxxx", "todo", "tbd", "tba", "tbc", "fixme")
_OPEN_CHARS = 30
_FEWEST_OPEN = 3
_FEWEST_PAIRS = 3
_PAIR = re.compile(r"(.{1,40}?)\s*[:：\t]\s*(.*)", re.DOTALL)
_VALUE_WORDS = 15
_MENU_WORDS = 4
_LINK_WORDS = 12
_URL = re.compile(r"[-*•\d.)\s]*(?:https?://|www\.)\S+\s*")


def template_page(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Lorem ipsum, or a form whose fields nobody has filled in."""
    return _filler(facts, limits) or _open_fields(facts, limits)


def _filler(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Nothing but filler below the headings: a page that quotes lorem ipsum has a sentence of its own."""
    if not any(word in facts.reading.text for word in _FILLER):
        return None
    filler, rest, is_furniture = 0, 0, furniture(facts)
    for unit in facts.units:
        if _is_filler(unit):
            filler += unit.chars
        elif not unit.is_heading and not is_furniture(unit) and not _is_open(unit):
            rest += unit.chars
    return mostly("template_page", filler, rest, least=limits.min_template_share, most_rest=_OPEN_CHARS)


def _is_filler(unit: Unit) -> bool:
    words = words_of(unit.plain)
    return sum(word in FILLER_WORDS for word in words) > _FILLER_SHARE * len(words)


def _open_fields(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Headings do not count: a skeleton has those."""
    if facts.meaningful - facts.linked > limits.max_page_chars:
        return None
    units = [unit for unit in facts.units if not unit.is_heading]
    is_open = _is_open if any(mark in facts.plain_text for mark in _OPEN_MARKS) else _is_placeholder
    filled = [unit for unit in units if not is_open(unit)]
    open_fields = len(units) - len(filled)
    if open_fields < _FEWEST_OPEN or sum(unit.chars for unit in filled) > limits.max_rest_chars:
        return None
    least = limits.min_template_share
    return mostly("template_page", open_fields, len(filled), least=least, most_rest=len(filled))


def _is_open(unit: Unit) -> bool:
    left, fields = _OPEN_FIELD.subn("", unit.text)
    return _is_placeholder(unit) or (fields > 0 and meaningful_chars(left) <= _OPEN_CHARS)


def _is_placeholder(unit: Unit) -> bool:
    return unit.label in PLACEHOLDERS


def metadata_only(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Author, date, file size; and not the document they describe."""
    if facts.meaningful - facts.linked > limits.max_page_chars:
        return None
    units = [unit for unit in facts.units if not unit.is_heading and not is_menu_entry(unit)]
    pairs = list(_metadata(units))
    described = sum(unit.chars for unit in pairs)
    rest = sum(unit.chars for unit in units) - described
    if sum(_key(unit) in METADATA_KEYS for unit in pairs) < _FEWEST_PAIRS:
        return None
    return _mostly("metadata_only", described, rest, limits.min_notice_share, limits)


def _metadata(units: list[Unit]) -> Iterator[Unit]:
    """Lines of a known key with its value, or a key alone and the short line after it."""
    before: Unit | None = None
    for unit in units:
        is_value = before is not None and before.label in METADATA_KEYS
        is_short = unit.words <= _VALUE_WORDS
        if is_short and (_key(unit) in METADATA_KEYS or is_value):
            yield unit
        before = None if is_value else unit


def _key(unit: Unit) -> str:
    match = _PAIR.fullmatch(unit.text)
    return as_label(plain(match[1])) if match else unit.label


def navigation_page(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Menus only: many links of a word or two."""
    return _links_only(facts, limits, "navigation_page", 0, _MENU_WORDS)


def link_list(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Titles or addresses of other documents only. A whole reference, linked or not, is more than a title."""
    return _links_only(facts, limits, "link_list", _MENU_WORDS, _LINK_WORDS)


def _links_only(
    facts: Facts, limits: StructureOptions, reason: Reason, above_words: int, most_words: int
) -> Finding | None:
    """A list that somebody wrote into a document, rather than a site made of its pages, has a word to it."""
    if facts.substance > limits.max_rest_chars:
        return None
    units = [unit for unit in facts.units if not unit.is_heading]
    entries = [unit for unit in units if is_menu_entry(unit) or _URL.fullmatch(unit.text)]
    links = len(facts.reading.links) + sum(not unit.is_link for unit in entries)
    words = sum(_LINK_WORDS if _URL.fullmatch(unit.text) else unit.words for unit in entries)
    if links < limits.min_links or not above_words * links < words <= most_words * links:
        return None
    linked = sum(unit.chars for unit in entries)
    rest = sum(unit.chars for unit in units) - linked
    most_rest = limits.max_rest_chars if facts.reading.is_web_page else _OPEN_CHARS
    return mostly(reason, linked, rest, least=limits.min_linked_share, most_rest=most_rest)


def _mostly(reason: Reason, chars: int, rest: int, least: float, limits: StructureOptions) -> Finding | None:
    return mostly(reason, chars, rest, least=least, most_rest=limits.max_rest_chars)

"""The two checks that look at the text of one document: the fast filter (size, language) and the structural
filter, whose rules are listed in `RULES` in the order in which they are asked."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from ingest_assets.settings.admission import AdmissionOptions, Reason, StructureOptions
from ingest_assets.stages.admission.facts import Facts, Unit, entropy_of, has_substance
from ingest_assets.stages.admission.garbled import (
    CORRUPT,
    FEWEST_LETTERS,
    GLYPHS,
    MOJIBAKE,
    glyph_share,
    mojibake_share,
    torn_share,
    unbroken_share,
    unsayable_share,
)
from ingest_assets.stages.admission.language import is_language
from ingest_assets.stages.admission.phrases import (
    BUTTONS,
    ERROR_SIGNALS,
    ERROR_WORDS,
    FIELD_NAMES,
    FILLER_SIGNS,
    FILLER_WORDS,
    GATE_SIGNALS,
    LOGIN_LABELS,
    MENU_LABELS,
    METADATA_KEYS,
    NOTICE_SIGNALS,
    PLACEHOLDERS,
    Signals,
)
from ingest_assets.stages.admission.reading import as_label, meaningful_chars, plain, samples, words_of


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a document is rejected, by which figure, and where the limit was."""

    reason: Reason
    figure: float
    limit: float


def above(reason: Reason, figure: float, limit: float) -> Finding | None:
    """A finding if the figure is above the limit."""
    return Finding(reason, round(figure, 4), limit) if figure > limit else None


def below(reason: Reason, figure: float, limit: float) -> Finding | None:
    """A finding if the figure is below the limit."""
    return Finding(reason, round(figure, 4), limit) if figure < limit else None


def mostly(reason: Reason, chars: int, rest: int, *, least: float, most_rest: int) -> Finding | None:
    """A finding if a text is mostly that, and hardly anything else."""
    share = chars / (chars + rest) if chars else 0.0
    return Finding(reason, round(share, 4), least) if share >= least and rest <= most_rest else None


# Rules about characters and words: whether there is text, and whether it is text at all.

_FEW_DIGITS, _FEW_SYMBOLS = 0.15, 0.15
_KNOWN_LANGUAGE = 0.5
_SAMPLES, _SAMPLE_CHARS = 5, 4000
_SYMBOL_ROW = re.compile(r"([^\w\s])\1{2,}")


def empty(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Not one letter or digit: a blank page, or rules and bullets only."""
    return below("empty", facts.meaningful, 1)


def corrupt_text(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Characters that were lost before anybody here could read them."""
    finding = above("corrupt_text", facts.share("corrupt"), limits.max_corrupt_share)
    return _unless_partly_clean(finding, CORRUPT, facts, limits)


def garbled_encoding(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Mojibake: `Ð¿Ñ€Ð¸Ð²ÐµÑ‚`. Single wrong accents in a readable text are not enough."""
    finding = above("garbled_encoding", mojibake_share(facts), limits.max_mojibake_share)
    return _unless_partly_clean(finding, MOJIBAKE, facts, limits)


def garbled_glyphs(facts: Facts, limits: StructureOptions) -> Finding | None:
    """A font without a table of characters: `/g23/g7`, `(cid:12)(cid:88)`."""
    finding = above("garbled_glyphs", glyph_share(facts), limits.max_glyph_share)
    return _unless_partly_clean(finding, GLYPHS, facts, limits)


def _unless_partly_clean(
    finding: Finding | None, bad: re.Pattern[str], facts: Facts, limits: StructureOptions
) -> Finding | None:
    """The finding, unless enough of the text stands in blocks with substance and nothing bad: say one half of
    a bilingual page."""
    if finding is None:
        return None
    clean = [b.text for b in facts.reading.blocks if has_substance(b) and not bad.search(b.text)]
    clean_share = sum(map(meaningful_chars, clean)) / facts.visible
    return finding if clean_share < limits.min_clean_share else None


def garbled_words(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Words nobody could say, letters torn apart, lines run together, encoded bytes."""
    sample = " ".join(samples(facts.loose_text, _SAMPLES, _SAMPLE_CHARS))
    # Letters may stand for others where there is no language, and neither part numbers nor code.
    may_be_unsayable = (
        facts.detected.score < _KNOWN_LANGUAGE
        and facts.share("digit") <= _FEW_DIGITS
        and facts.share("symbol") <= _FEW_SYMBOLS
    )
    unsayable = unsayable_share(sample) if may_be_unsayable else 0.0
    return (
        above("garbled_words", unsayable, limits.max_unsayable_share)
        or above("garbled_words", torn_share(sample), limits.max_broken_word_share)
        or above("garbled_words", unbroken_share(facts), limits.max_broken_word_share)
    )


def entropy_too_low(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Nearly one character again and again; a table of zeros with enough headings is none."""
    if facts.entropy >= limits.min_entropy or facts.visible < FEWEST_LETTERS:
        return None
    if facts.different_words >= limits.min_varied_words:
        return None
    return below("entropy_too_low", entropy_of(Counter(_without_rows(facts))), limits.min_entropy)


def entropy_too_high(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Characters from everywhere, as bytes give that were no text."""
    return above("entropy_too_high", facts.entropy, limits.max_entropy)


def too_many_symbols(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Drawings of characters."""
    if facts.share("symbol") <= limits.max_symbol_share or facts.visible < FEWEST_LETTERS:
        return None
    if facts.different_words >= limits.min_varied_words:
        return None
    words = facts.visible - facts.kinds["symbol"]
    return above("too_many_symbols", 1 - words / len(_without_rows(facts)), limits.max_symbol_share)


def _without_rows(facts: Facts) -> str:
    """The visible text; a dotted line of a table of contents is one dot."""
    return "".join(_SYMBOL_ROW.sub(r"\1", facts.reading.text).split())


def too_many_digits(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Numbers without words to find them by; tables of numbers are what they should be."""
    if facts.share("digit") <= limits.max_digit_share or facts.kinds["letter"] > limits.max_rest_chars:
        return None
    loose = "".join(facts.loose_text.split())
    if len(loose) * 2 < facts.visible:
        return None
    return above("too_many_digits", sum(map(str.isdigit, loose)) / len(loose), limits.max_digit_share)


def repeated_lines(facts: Facts, limits: StructureOptions) -> Finding | None:
    """The same few lines over and over; a poem with a refrain has other lines enough."""
    if facts.repeated_share <= limits.max_repeated_share:
        return None
    if sum(map(meaningful_chars, facts.lines)) > limits.max_rest_chars:
        return None
    return above("repeated_lines", facts.repeated_share, limits.max_repeated_share)


# Rules about pages that stand in for a document: errors, logins, notices.
#
# A document may speak of all these. So a page has to be short, to speak like such a page in more than one
# way, and to say hardly anything else.

_STATUS = re.compile(rf"(?:(?:{'|'.join(ERROR_WORDS)})\W*)*[45]\d\d\b.{{0,50}}")
# A phrase in a longer sentence is quoted or explained rather than said.
_SENTENCE_WORDS = 40
_LABEL_WORDS = 15
_MOST_WORDS = {"missing": 8}
# The names of the site and of the page; more of them make slides or an outline.
_FREE_HEADINGS = 2
_ALL = 0.95


@dataclass(frozen=True, slots=True)
class Speech:
    """How much of a page speaks like pages of a kind, by which signals, and how much else it says."""

    signals: frozenset[str]
    chars: int
    rest: int

    @property
    def share(self) -> float:
        return self.chars / (self.chars + self.rest) if self.chars else 0.0

    def finding(self, reason: Reason, least: float, limits: StructureOptions) -> Finding | None:
        return mostly(reason, self.chars, self.rest, least=least, most_rest=limits.max_rest_chars)


def error_page(facts: Facts, limits: StructureOptions) -> Finding | None:
    """404, 500, access denied, please enable JavaScript."""
    speech = _speech(
        facts, limits, ERROR_SIGNALS, lambda label: "status" if _STATUS.fullmatch(label) else None
    )
    plain = bool(speech.signals & {"missing", "script"})
    is_one = (plain and speech.share >= _ALL) or (
        len(speech.signals) >= 2 and (plain or "visitor" in speech.signals)
    )
    return speech.finding("error_page", limits.min_page_share, limits) if is_one else None


def login_page(facts: Facts, limits: StructureOptions) -> Finding | None:
    """A name, a password, and nothing to read before they are given."""

    def field(label: str) -> str | None:
        return next((name for name, labels in LOGIN_LABELS.items() if label in labels), None)

    speech = _speech(facts, limits, GATE_SIGNALS, field, longest=_LABEL_WORDS)
    is_one = ("gate" in speech.signals and speech.share >= _ALL) or (
        len(speech.signals) >= 3 and "password" in speech.signals
    )
    return speech.finding("login_page", limits.min_page_share, limits) if is_one else None


def boilerplate_page(facts: Facts, limits: StructureOptions) -> Finding | None:
    """A cookie notice, a call for subscribers, a line of copyright, and nothing else."""
    speech = _speech(facts, limits, NOTICE_SIGNALS, lambda label: "button" if label in BUTTONS else None)
    is_one = bool(speech.signals & {"cookies", "newsletter"}) and len(speech.signals) >= 2
    return speech.finding("boilerplate_page", limits.min_notice_share, limits) if is_one else None


def furniture(facts: Facts) -> Callable[[Unit], bool]:
    """Whether a line belongs to the page rather than to its text: menus, lines of copyright."""
    rights = NOTICE_SIGNALS.heard(facts.plain_text).get("rights", ())
    return lambda unit: is_menu_entry(unit) or any(phrase in unit.plain for phrase in rights)


def is_menu_entry(unit: Unit) -> bool:
    """Whether a line is a link, or one of the words that menus are made of."""
    return unit.is_link or unit.label in MENU_LABELS


def _speech(
    facts: Facts,
    limits: StructureOptions,
    table: Signals,
    label: Callable[[str], str | None],
    longest: int = _SENTENCE_WORDS,
) -> Speech:
    """What a page's sentences and labels sound like; menus and lines of copyright count for nothing."""
    if facts.meaningful - facts.linked > limits.max_page_chars:
        return Speech(frozenset(), 0, facts.meaningful)
    heard, is_furniture = table.heard(facts.plain_text), furniture(facts)
    signals: set[str] = set()
    chars = rest = headings = 0
    for unit in facts.units:
        spoken = {name} if (name := label(unit.label)) else set()
        for signal, phrases in heard.items():
            most = min(longest, _MOST_WORDS.get(signal, longest))
            if unit.words <= most and any(phrase in unit.plain for phrase in phrases):
                spoken.add(signal)
        signals |= spoken
        headings += unit.is_heading and not spoken
        if spoken:
            chars += unit.chars
        elif not is_furniture(unit) and not (unit.is_heading and headings <= _FREE_HEADINGS):
            rest += unit.chars
    return Speech(frozenset(signals), chars, rest)


# Rules about text that is no content: templates to be filled in, bare metadata, menus, lists of links.

_FILLER_SHARE = 0.6
_OPEN_FIELD = re.compile(
    r"\{\{[^{}]{0,80}\}\}|\$\{[^{}]{1,60}\}|<%.{1,60}?%>|%[A-Z_]{3,}%|_{4,}|\bx{4,}\b"
    r"|\b(?:todo|tbd|tba|tbc|fixme)\b"
    rf"|[\[<](?:{'|'.join(FIELD_NAMES)})\b[^\[\]<>]{{0,50}}[\]>]",
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
_WEB_PAGES = ("text/html", "application/xhtml+xml")
_URL = re.compile(r"[-*•\d.)\s]*(?:https?://|www\.)\S+\s*")


def template_page(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Lorem ipsum, or a form whose fields nobody has filled in."""
    return _filler(facts, limits) or _open_fields(facts, limits)


def _filler(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Nothing but filler below the headings: a page that quotes lorem ipsum has a sentence of its own."""
    if not any(word in facts.reading.text for word in FILLER_SIGNS):
        return None
    filler, rest, is_furniture = 0, 0, furniture(facts)
    for unit in facts.units:
        words = words_of(unit.plain)
        if sum(word in FILLER_WORDS for word in words) > _FILLER_SHARE * len(words):
            filler += unit.chars
        elif not unit.is_heading and not is_furniture(unit) and not _is_open(unit):
            rest += unit.chars
    return mostly("template_page", filler, rest, least=limits.min_template_share, most_rest=_OPEN_CHARS)


def _open_fields(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Headings do not count: a skeleton has those."""
    if facts.meaningful - facts.linked > limits.max_page_chars:
        return None
    units = [unit for unit in facts.units if not unit.is_heading]
    has_marks = any(mark in facts.plain_text for mark in _OPEN_MARKS)
    is_open = _is_open if has_marks else lambda unit: unit.label in PLACEHOLDERS
    filled = [unit for unit in units if not is_open(unit)]
    open_fields = len(units) - len(filled)
    if open_fields < _FEWEST_OPEN or sum(unit.chars for unit in filled) > limits.max_rest_chars:
        return None
    least = limits.min_template_share
    return mostly("template_page", open_fields, len(filled), least=least, most_rest=len(filled))


def _is_open(unit: Unit) -> bool:
    left, fields = _OPEN_FIELD.subn("", unit.text)
    return unit.label in PLACEHOLDERS or (fields > 0 and meaningful_chars(left) <= _OPEN_CHARS)


def metadata_only(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Author, date, file size; and not the document they describe."""
    if facts.meaningful - facts.linked > limits.max_page_chars:
        return None
    units = [unit for unit in facts.units if not unit.is_heading and not is_menu_entry(unit)]
    # Lines of a known key with its value, or a key alone and the short line after it.
    pairs: list[Unit] = []
    before: Unit | None = None
    for unit in units:
        is_value = before is not None and before.label in METADATA_KEYS
        if unit.words <= _VALUE_WORDS and (_key(unit) in METADATA_KEYS or is_value):
            pairs.append(unit)
        before = None if is_value else unit
    described = sum(unit.chars for unit in pairs)
    rest = sum(unit.chars for unit in units) - described
    if sum(_key(unit) in METADATA_KEYS for unit in pairs) < _FEWEST_PAIRS:
        return None
    return mostly(
        "metadata_only", described, rest, least=limits.min_notice_share, most_rest=limits.max_rest_chars
    )


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
    is_web_page = facts.reading.mime in _WEB_PAGES
    most_rest = limits.max_rest_chars if is_web_page else _OPEN_CHARS
    return mostly(reason, linked, rest, least=limits.min_linked_share, most_rest=most_rest)


Rule = Callable[[Facts, StructureOptions], Finding | None]

RULES: tuple[Rule, ...] = (
    corrupt_text,
    empty,
    entropy_too_low,
    entropy_too_high,
    garbled_encoding,
    garbled_glyphs,
    garbled_words,
    too_many_symbols,
    too_many_digits,
    error_page,
    login_page,
    boilerplate_page,
    template_page,
    metadata_only,
    navigation_page,
    link_list,
    repeated_lines,
)


def structural_filter(facts: Facts, limits: StructureOptions) -> Finding | None:
    """The finding of the first rule that has one."""
    return next((finding for rule in RULES if (finding := rule(facts, limits))), None)


def fast_filter(facts: Facts, options: AdmissionOptions) -> Finding | None:
    """The first finding about a document's size or language."""
    least, words = options.min_meaningful_chars, options.short_text_words
    says_something = words and facts.different_words >= words
    # A text without any letters and digits is empty, not short.
    if 0 < facts.meaningful < least and not says_something:
        return below("too_short", facts.meaningful, least)
    if facts.visible > options.max_chars:
        return above("too_long", facts.visible, options.max_chars)
    wanted, detected = options.language, facts.detected
    if not wanted.allowed:
        return None
    if detected.score < wanted.min_confidence:
        may_pass = wanted.uncertain == "admit"
        return None if may_pass else below("language_uncertain", detected.score, wanted.min_confidence)
    if is_language(detected.language, wanted.allowed):
        return None
    return Finding("language_not_allowed", detected.score, wanted.min_confidence)

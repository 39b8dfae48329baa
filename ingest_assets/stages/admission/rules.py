"""The two checks of one document's text: the fast filter (size, language), and the structural filter, which
applies the `RULES` in order."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from ingest_assets.settings.admission import AdmissionOptions, Reason, StructureOptions
from ingest_assets.stages.admission.document_text import (
    label_form,
    meaningful_chars,
    plain,
    samples,
    words_of,
)
from ingest_assets.stages.admission.facts import Facts, Unit, entropy_of, has_substance
from ingest_assets.stages.admission.garbled import (
    CORRUPT,
    GLYPHS,
    MIN_LETTERS,
    MOJIBAKE,
    glyph_share,
    mojibake_share,
    run_together_share,
    single_letter_share,
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


@dataclass(frozen=True, slots=True)
class Rejection:
    """The reason why a document is rejected, the measured figure and the limit."""

    reason: Reason
    figure: float
    limit: float


def above(reason: Reason, figure: float, limit: float) -> Rejection | None:
    """Return a rejection if the figure is above the limit."""
    return Rejection(reason, round(figure, 4), limit) if figure > limit else None


def below(reason: Reason, figure: float, limit: float) -> Rejection | None:
    """Return a rejection if the figure is below the limit."""
    return Rejection(reason, round(figure, 4), limit) if figure < limit else None


def mostly(reason: Reason, chars: int, rest: int, *, min_share: float, max_rest: int) -> Rejection | None:
    """Return a rejection if `chars` are at least `min_share` of all, and `rest` is at most `max_rest`."""
    share = chars / (chars + rest) if chars else 0.0
    return Rejection(reason, round(share, 4), min_share) if share >= min_share and rest <= max_rest else None


# Rules about characters and words: is there any text, and is it readable?

_FEW_DIGITS, _FEW_SYMBOLS = 0.15, 0.15
_KNOWN_LANGUAGE = 0.5
_SAMPLES, _SAMPLE_CHARS = 5, 4000
_SYMBOL_ROW = re.compile(r"([^\w\s])\1{2,}")


def empty(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """No letter or digit: a blank page, or rules and bullets only."""
    return below("empty", facts.meaningful, 1)


def corrupt_text(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Characters that were lost before the document was read."""
    rejection = above("corrupt_text", facts.share("corrupt"), limits.max_corrupt_share)
    return _unless_partly_clean(rejection, CORRUPT, facts, limits)


def garbled_encoding(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Mojibake: `Ð¿Ñ€Ð¸Ð²ÐµÑ‚`. Single wrong accents in a readable text are not enough."""
    rejection = above("garbled_encoding", mojibake_share(facts), limits.max_mojibake_share)
    return _unless_partly_clean(rejection, MOJIBAKE, facts, limits)


def garbled_glyphs(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Glyph numbers of a font without a character map: `/g23/g7`, `(cid:12)(cid:88)`."""
    rejection = above("garbled_glyphs", glyph_share(facts), limits.max_glyph_share)
    return _unless_partly_clean(rejection, GLYPHS, facts, limits)


def _unless_partly_clean(
    rejection: Rejection | None, bad: re.Pattern[str], facts: Facts, limits: StructureOptions
) -> Rejection | None:
    """Return the rejection, unless enough text is in clean blocks with substance, as in a bilingual page."""
    if rejection is None:
        return None
    clean = [b.text for b in facts.document.blocks if has_substance(b) and not bad.search(b.text)]
    clean_share = sum(map(meaningful_chars, clean)) / facts.visible
    return rejection if clean_share < limits.min_clean_share else None


def garbled_words(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Unpronounceable words, words split into letters, words run together, encoded bytes."""
    sample = " ".join(samples(facts.text_outside_tables, _SAMPLES, _SAMPLE_CHARS))
    # Replaced letters have no detectable language. Nor do code and part numbers, which are excluded.
    may_be_unsayable = (
        facts.detected.score < _KNOWN_LANGUAGE
        and facts.share("digit") <= _FEW_DIGITS
        and facts.share("symbol") <= _FEW_SYMBOLS
    )
    unsayable = unsayable_share(sample) if may_be_unsayable else 0.0
    return (
        above("garbled_words", unsayable, limits.max_unsayable_share)
        or above("garbled_words", single_letter_share(sample), limits.max_broken_word_share)
        or above("garbled_words", run_together_share(facts), limits.max_broken_word_share)
    )


def entropy_too_low(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Almost the same character throughout. A table of zeros with enough headings is accepted."""
    if facts.entropy >= limits.min_entropy or facts.visible < MIN_LETTERS:
        return None
    if facts.different_words >= limits.min_varied_words:
        return None
    return below("entropy_too_low", entropy_of(Counter(_without_rows(facts))), limits.min_entropy)


def entropy_too_high(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Characters from all over Unicode: bytes that were not text."""
    return above("entropy_too_high", facts.entropy, limits.max_entropy)


def too_many_symbols(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Drawings made of characters."""
    if facts.share("symbol") <= limits.max_symbol_share or facts.visible < MIN_LETTERS:
        return None
    if facts.different_words >= limits.min_varied_words:
        return None
    words = facts.visible - facts.kinds["symbol"]
    return above("too_many_symbols", 1 - words / len(_without_rows(facts)), limits.max_symbol_share)


def _without_rows(facts: Facts) -> str:
    """Return the visible text with rows of equal symbols, such as dotted lines, as one symbol each."""
    return "".join(_SYMBOL_ROW.sub(r"\1", facts.document.text).split())


def too_many_digits(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Numbers without words that a search could find. Tables of numbers are accepted."""
    if facts.share("digit") <= limits.max_digit_share or facts.kinds["letter"] > limits.max_rest_chars:
        return None
    loose = "".join(facts.text_outside_tables.split())
    if len(loose) * 2 < facts.visible:
        return None
    return above("too_many_digits", sum(map(str.isdigit, loose)) / len(loose), limits.max_digit_share)


def repeated_lines(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """The same few lines over and over. A poem with a refrain has enough other lines."""
    if facts.repeated_share <= limits.max_repeated_share:
        return None
    if sum(map(meaningful_chars, facts.lines)) > limits.max_rest_chars:
        return None
    return above("repeated_lines", facts.repeated_share, limits.max_repeated_share)


# Rules about pages that were delivered in place of a document: errors, logins, notices.
#
# A document can also be about these. So a rejected page must be short, have more than one signal of such a
# page, and contain little else.

_STATUS = re.compile(rf"(?:(?:{'|'.join(ERROR_WORDS)})\W*)*[45]\d\d\b.{{0,50}}")
# In a longer sentence, a phrase is quoted or explained, and not a signal.
_SENTENCE_WORDS = 40
_LABEL_WORDS = 15
_MAX_WORDS = {"missing": 8}
# The names of the site and of the page. More headings are slides or an outline.
_FREE_HEADINGS = 2
_ALL = 0.95


@dataclass(frozen=True, slots=True)
class SignalMatch:
    """The signals that a page has, the characters of its units with signals, and those of all others."""

    signals: frozenset[str]
    chars: int
    rest: int

    @property
    def share(self) -> float:
        return self.chars / (self.chars + self.rest) if self.chars else 0.0

    def rejection(self, reason: Reason, min_share: float, limits: StructureOptions) -> Rejection | None:
        return mostly(reason, self.chars, self.rest, min_share=min_share, max_rest=limits.max_rest_chars)


def error_page(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """404, 500, access denied, please enable JavaScript."""
    match = _match_signals(
        facts, limits, ERROR_SIGNALS, lambda label: "status" if _STATUS.fullmatch(label) else None
    )
    is_clear = bool(match.signals & {"missing", "script"})
    is_error = (is_clear and match.share >= _ALL) or (
        len(match.signals) >= 2 and (is_clear or "visitor" in match.signals)
    )
    return match.rejection("error_page", limits.min_page_share, limits) if is_error else None


def login_page(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Fields for a name and a password, and no other text."""

    def field(label: str) -> str | None:
        return next((name for name, labels in LOGIN_LABELS.items() if label in labels), None)

    match = _match_signals(facts, limits, GATE_SIGNALS, field, max_words=_LABEL_WORDS)
    is_login = ("gate" in match.signals and match.share >= _ALL) or (
        len(match.signals) >= 3 and "password" in match.signals
    )
    return match.rejection("login_page", limits.min_page_share, limits) if is_login else None


def boilerplate_page(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """A cookie notice, an invitation to subscribe or a copyright line, and nothing else."""
    match = _match_signals(
        facts, limits, NOTICE_SIGNALS, lambda label: "button" if label in BUTTONS else None
    )
    is_notice = bool(match.signals & {"cookies", "newsletter"}) and len(match.signals) >= 2
    return match.rejection("boilerplate_page", limits.min_notice_share, limits) if is_notice else None


def furniture(facts: Facts) -> Callable[[Unit], bool]:
    """Return a predicate for lines that belong to the page and not to its text: menus, copyright lines."""
    rights = NOTICE_SIGNALS.matches(facts.plain_text).get("rights", ())
    return lambda unit: is_menu_entry(unit) or any(phrase in unit.plain for phrase in rights)


def is_menu_entry(unit: Unit) -> bool:
    """Return True if a line is a link, or a usual label of menus."""
    return unit.is_link or unit.label in MENU_LABELS


def _match_signals(
    facts: Facts,
    limits: StructureOptions,
    table: Signals,
    label: Callable[[str], str | None],
    max_words: int = _SENTENCE_WORDS,
) -> SignalMatch:
    """Match a page's sentences and labels with signals; menus and copyright lines are ignored."""
    if facts.meaningful - facts.linked > limits.max_page_chars:
        return SignalMatch(frozenset(), 0, facts.meaningful)
    phrases_of, is_furniture = table.matches(facts.plain_text), furniture(facts)
    signals: set[str] = set()
    chars = rest = headings = 0
    for unit in facts.units:
        matched = {name} if (name := label(unit.label)) else set()
        for signal, phrases in phrases_of.items():
            limit = min(max_words, _MAX_WORDS.get(signal, max_words))
            if unit.words <= limit and any(phrase in unit.plain for phrase in phrases):
                matched.add(signal)
        signals |= matched
        headings += unit.is_heading and not matched
        if matched:
            chars += unit.chars
        elif not is_furniture(unit) and not (unit.is_heading and headings <= _FREE_HEADINGS):
            rest += unit.chars
    return SignalMatch(frozenset(signals), chars, rest)


# Rules about text without content: unfilled templates, bare metadata, menus, lists of links.

_FILLER_SHARE = 0.6
_OPEN_FIELD = re.compile(
    r"\{\{[^{}]{0,80}\}\}|\$\{[^{}]{1,60}\}|<%.{1,60}?%>|%[A-Z_]{3,}%|_{4,}|\bx{4,}\b"
    r"|\b(?:todo|tbd|tba|tbc|fixme)\b"
    rf"|[\[<](?:{'|'.join(FIELD_NAMES)})\b[^\[\]<>]{{0,50}}[\]>]",
    re.IGNORECASE,
)
_OPEN_MARKS = ("{", "<", "[", "%", "____", "xxxx", "todo", "tbd", "tba", "tbc", "fixme")
_OPEN_CHARS = 30
_MIN_OPEN = 3
_MIN_PAIRS = 3
_PAIR = re.compile(r"(.{1,40}?)\s*[:：\t]\s*(.*)", re.DOTALL)
_VALUE_WORDS = 15
_MENU_WORDS = 4
_LINK_WORDS = 12
_WEB_PAGES = ("text/html", "application/xhtml+xml")
_URL = re.compile(r"[-*•\d.)\s]*(?:https?://|www\.)\S+\s*")


def template_page(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Lorem ipsum, or a form with empty fields."""
    return _filler(facts, limits) or _open_fields(facts, limits)


def _filler(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Only filler text below the headings. A page that quotes lorem ipsum has other sentences, too."""
    if not any(word in facts.document.text for word in FILLER_SIGNS):
        return None
    filler, rest, is_furniture = 0, 0, furniture(facts)
    for unit in facts.units:
        words = words_of(unit.plain)
        if sum(word in FILLER_WORDS for word in words) > _FILLER_SHARE * len(words):
            filler += unit.chars
        elif not unit.is_heading and not is_furniture(unit) and not _is_open(unit):
            rest += unit.chars
    return mostly("template_page", filler, rest, min_share=limits.min_template_share, max_rest=_OPEN_CHARS)


def _open_fields(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Mostly unfilled fields. Headings are ignored: a template has those."""
    if facts.meaningful - facts.linked > limits.max_page_chars:
        return None
    units = [unit for unit in facts.units if not unit.is_heading]
    has_marks = any(mark in facts.plain_text for mark in _OPEN_MARKS)
    is_open = _is_open if has_marks else lambda unit: unit.label in PLACEHOLDERS
    filled = [unit for unit in units if not is_open(unit)]
    open_fields = len(units) - len(filled)
    if open_fields < _MIN_OPEN or sum(unit.chars for unit in filled) > limits.max_rest_chars:
        return None
    min_share = limits.min_template_share
    return mostly("template_page", open_fields, len(filled), min_share=min_share, max_rest=len(filled))


def _is_open(unit: Unit) -> bool:
    left, fields = _OPEN_FIELD.subn("", unit.text)
    return unit.label in PLACEHOLDERS or (fields > 0 and meaningful_chars(left) <= _OPEN_CHARS)


def metadata_only(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Author, date and file size, without the document they describe."""
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
    if sum(_key(unit) in METADATA_KEYS for unit in pairs) < _MIN_PAIRS:
        return None
    return mostly(
        "metadata_only", described, rest, min_share=limits.min_notice_share, max_rest=limits.max_rest_chars
    )


def _key(unit: Unit) -> str:
    match = _PAIR.fullmatch(unit.text)
    return label_form(plain(match[1])) if match else unit.label


def navigation_page(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Menus only: many links of one or two words."""
    return _links_only(facts, limits, "navigation_page", 0, _MENU_WORDS)


def link_list(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Titles or addresses of other documents only. Full references are accepted, linked or not."""
    return _links_only(facts, limits, "link_list", _MENU_WORDS, _LINK_WORDS)


def _links_only(
    facts: Facts, limits: StructureOptions, reason: Reason, above_words: int, max_words: int
) -> Rejection | None:
    """Links only. Outside web pages, a few words of other text suffice to accept a list of links."""
    if facts.substance > limits.max_rest_chars:
        return None
    units = [unit for unit in facts.units if not unit.is_heading]
    entries = [unit for unit in units if is_menu_entry(unit) or _URL.fullmatch(unit.text)]
    links = len(facts.document.links) + sum(not unit.is_link for unit in entries)
    words = sum(_LINK_WORDS if _URL.fullmatch(unit.text) else unit.words for unit in entries)
    if links < limits.min_links or not above_words * links < words <= max_words * links:
        return None
    linked = sum(unit.chars for unit in entries)
    rest = sum(unit.chars for unit in units) - linked
    is_web_page = facts.document.mime in _WEB_PAGES
    max_rest = limits.max_rest_chars if is_web_page else _OPEN_CHARS
    return mostly(reason, linked, rest, min_share=limits.min_linked_share, max_rest=max_rest)


Rule = Callable[[Facts, StructureOptions], Rejection | None]

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


def structural_filter(facts: Facts, limits: StructureOptions) -> Rejection | None:
    """Return the rejection of the first rule that returns one."""
    return next((rejection for rule in RULES if (rejection := rule(facts, limits))), None)


def fast_filter(facts: Facts, options: AdmissionOptions) -> Rejection | None:
    """Return the first rejection because of a document's size or language."""
    min_chars, words = options.min_meaningful_chars, options.short_text_words
    has_enough_words = words and facts.different_words >= words
    # A text without any letters and digits is empty, not short.
    if 0 < facts.meaningful < min_chars and not has_enough_words:
        return below("too_short", facts.meaningful, min_chars)
    if facts.visible > options.max_chars:
        return above("too_long", facts.visible, options.max_chars)
    language, detected = options.language, facts.detected
    if not language.allowed:
        return None
    if detected.score < language.min_confidence:
        is_admitted = language.uncertain == "admit"
        return None if is_admitted else below("language_uncertain", detected.score, language.min_confidence)
    if is_language(detected.language, language.allowed):
        return None
    return Rejection("language_not_allowed", detected.score, language.min_confidence)

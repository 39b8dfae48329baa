"""Rules about pages that stand in for a document: errors, logins, notices.

A document may speak of all these. So a page has to be short, to speak like such a page in more than one way,
and to say hardly anything else.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ingest_assets.model.admission import Reason, StructureOptions
from ingest_assets.stages.judging.facts import Facts, Unit
from ingest_assets.stages.judging.finding import Finding, mostly
from ingest_assets.stages.judging.labels import BUTTONS, LOGIN_LABELS, MENU_LABELS
from ingest_assets.stages.judging.phrases import ERROR_SIGNALS, GATE_SIGNALS, NOTICE_SIGNALS, Heard, Signals

_ERROR_WORDS = r"(?:http|error|fehler|erreur|errore|erro|błąd|ошибка|错误|錯誤|エラー|오류|code)"
_STATUS = re.compile(rf"(?:{_ERROR_WORDS}\W*)*[45]\d\d\b.{{0,50}}")
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


def error_page(facts: Facts, limits: StructureOptions) -> Finding | None:
    """404, 500, access denied, please enable JavaScript."""
    speech = _speech(facts, limits, ERROR_SIGNALS, _status_line)
    plain = bool(speech.signals & {"missing", "script"})
    is_one = (plain and speech.share >= _ALL) or (
        len(speech.signals) >= 2 and (plain or "visitor" in speech.signals)
    )
    return _found("error_page", speech, limits.min_page_share, limits) if is_one else None


def login_page(facts: Facts, limits: StructureOptions) -> Finding | None:
    """A name, a password, and nothing to read before they are given."""
    speech = _speech(facts, limits, GATE_SIGNALS, _login_label, longest=_LABEL_WORDS)
    is_one = ("gate" in speech.signals and speech.share >= _ALL) or (
        len(speech.signals) >= 3 and "password" in speech.signals
    )
    return _found("login_page", speech, limits.min_page_share, limits) if is_one else None


def boilerplate_page(facts: Facts, limits: StructureOptions) -> Finding | None:
    """A cookie notice, a call for subscribers, a line of copyright, and nothing else."""
    speech = _speech(facts, limits, NOTICE_SIGNALS, _button)
    is_one = bool(speech.signals & {"cookies", "newsletter"}) and len(speech.signals) >= 2
    return _found("boilerplate_page", speech, limits.min_notice_share, limits) if is_one else None


def furniture(facts: Facts) -> Callable[[Unit], bool]:
    """Tells whether a line belongs to the page rather than to its text: menus, lines of copyright."""
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
        found = _signals(unit, heard, label, longest)
        signals |= found
        headings += unit.is_heading and not found
        if found:
            chars += unit.chars
        elif not is_furniture(unit) and not (unit.is_heading and headings <= _FREE_HEADINGS):
            rest += unit.chars
    return Speech(frozenset(signals), chars, rest)


def _signals(unit: Unit, heard: Heard, label: Callable[[str], str | None], longest: int) -> set[str]:
    found = {name} if (name := label(unit.label)) else set()
    for signal, phrases in heard.items():
        most = min(longest, _MOST_WORDS.get(signal, longest))
        if unit.words <= most and any(phrase in unit.plain for phrase in phrases):
            found.add(signal)
    return found


def _status_line(label: str) -> str | None:
    return "status" if _STATUS.fullmatch(label) else None


def _login_label(label: str) -> str | None:
    return next((signal for signal, labels in LOGIN_LABELS.items() if label in labels), None)


def _button(label: str) -> str | None:
    return "button" if label in BUTTONS else None


def _found(reason: Reason, speech: Speech, least: float, limits: StructureOptions) -> Finding | None:
    return mostly(reason, speech.chars, speech.rest, least=least, most_rest=limits.max_rest_chars)

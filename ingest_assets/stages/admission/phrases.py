"""Phrases of error, login and cookie pages, in lower case, read from `phrases.toml`.

A table of signals maps each signal to its phrases in many languages. One signal proves nothing, two are
evidence.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PhrasesBySignal = Mapping[str, tuple[str, ...]]


class Signals:
    """Phrases by signal."""

    def __init__(self, phrases: PhrasesBySignal) -> None:
        self._phrases = phrases
        # Most texts are ASCII: there is no need to search them for Chinese.
        self._in_ascii = {signal: tuple(filter(str.isascii, words)) for signal, words in phrases.items()}

    def matches(self, text: str) -> PhrasesBySignal:
        """Return the phrases that occur in a text, by signal."""
        table = self._in_ascii if text.isascii() else self._phrases
        matches = {signal: tuple(p for p in phrases if p in text) for signal, phrases in table.items()}
        return {signal: phrases for signal, phrases in matches.items() if phrases}


def _phrases(text: str) -> tuple[str, ...]:
    """Split a text at semicolons; phrases can span lines."""
    return tuple(" ".join(phrase.split()) for phrase in text.split(";"))


def _by_name(table: Mapping[str, str]) -> PhrasesBySignal:
    return {name: _phrases(text) for name, text in table.items()}


_LISTS: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8")
)
ERROR_SIGNALS = Signals(_by_name(_LISTS["error_signals"]))
GATE_SIGNALS = Signals(_by_name(_LISTS["gate_signals"]))
NOTICE_SIGNALS = Signals(_by_name(_LISTS["notice_signals"]))
LOGIN_LABELS = {name: frozenset(labels) for name, labels in _by_name(_LISTS["login_labels"]).items()}
MENU_LABELS = frozenset(_phrases(_LISTS["menu_labels"]))
BUTTONS = frozenset(_phrases(_LISTS["buttons"]))
METADATA_KEYS = frozenset(_phrases(_LISTS["metadata_keys"]))
PLACEHOLDERS = frozenset(_phrases(_LISTS["placeholders"]))
FILLER_WORDS = frozenset(_LISTS["filler_words"].split())
FILLER_SIGNS = _phrases(_LISTS["filler_signs"])
ERROR_WORDS = _phrases(_LISTS["error_words"])
FIELD_NAMES = _phrases(_LISTS["field_names"])
DATE_LABELS = _phrases(_LISTS["date_labels"])

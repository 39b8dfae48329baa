"""Every reason to reject a document, by pages as they are found, and by others that only look like them."""

from typing import get_args

import pytest

from ingest_assets.settings.admission import AdmissionOptions, LanguageOptions, Reason
from ingest_assets.stages.admission.judge import Judgement, judge
from ingest_assets.stages.admission.reading import Reading
from ingest_tests.stages.admission.broken import ARABIC, BROKEN, CHINESE, ENGLISH, NEARLY_BROKEN, RUSSIAN
from ingest_tests.stages.admission.pages import DEFAULTS, EXAMPLES, examples, page, plain

_PAGE_REASONS = sorted(path.stem for path in EXAMPLES.glob("*.txt"))
_GERMAN = "Die Hängebrücke wurde 1932 eröffnet. Die Seile sind in gutem Zustand, das Deck hat Risse. "
_ENGLISH_ONLY = AdmissionOptions(language=LanguageOptions(allowed=("en",)))
_CERTAINLY_ENGLISH = AdmissionOptions(language=LanguageOptions(allowed=("en",), uncertain="reject"))
_SMALL = AdmissionOptions(max_chars=200)
_TABLE = page("| 12 | 9.5 | 7 |\n| 14 | 9.7 | 8 |\n" * 20)

# Reasons of the fast filter: options, what they reject, what they keep.
SIZE_AND_LANGUAGE: dict[str, tuple[AdmissionOptions, list[Reading], list[Reading]]] = {
    "too_short": (
        DEFAULTS,
        [
            page("Home"),
            page("# Docling\nImage test"),
            page("Loading …"),
            plain("word " * 20),
            page("加载中，请稍候"),
        ],
        [
            page("The bridge is closed tonight because of strong wind."),
            page("| Year | Ducks |\n| 2019 | 120 |\n| 2020 | 135 |\n| 2021 | 150 |"),
            page("今晚十点至凌晨五点，因大风大桥封闭，请绕行。"),
            plain(" ".join(ENGLISH.split()[:22])),
        ],
    ),
    "too_long": (_SMALL, [plain(ENGLISH)], [plain(ENGLISH[:200])]),
    "language_not_allowed": (
        _ENGLISH_ONLY,
        [plain(_GERMAN * 2), plain(RUSSIAN), plain(CHINESE), plain(ARABIC)],
        [plain(ENGLISH), _TABLE, plain(f"{ENGLISH} Er sagte: „Die Brücke bleibt offen.“")],
    ),
    "language_uncertain": (_CERTAINLY_ENGLISH, [_TABLE], [plain(ENGLISH)]),
}


def test_every_reason_has_its_examples():
    """Duplicates are no matter of one document and have their examples where claims are made."""
    own = set(get_args(Reason)) - {"duplicate", "near_duplicate"}

    assert own == set(BROKEN) | set(SIZE_AND_LANGUAGE) | (set(_PAGE_REASONS) - {"useful"})
    assert set(BROKEN) == set(NEARLY_BROKEN)
    assert all(examples(reason, "keep") for reason in _PAGE_REASONS)
    assert all(examples(reason, "reject") for reason in _PAGE_REASONS if reason != "useful")


@pytest.mark.parametrize(
    ("reason", "reading"),
    [(reason, reading) for reason, readings in BROKEN.items() for reading in readings]
    + [(reason, reading) for reason in _PAGE_REASONS for reading in examples(reason, "reject")],
    ids=lambda value: value if isinstance(value, str) else value.text[:30],
)
def test_a_page_without_a_document_is_rejected_for_what_it_is(reason: str, reading: Reading):
    """The figure that decided stands beside the limit that it broke."""
    finding = judge(reading, DEFAULTS).structural_filter

    assert finding is not None
    assert finding.reason == reason
    assert (finding.figure < finding.limit) == (
        reason in ("empty", "entropy_too_low")
    ) or reason in _PAGE_REASONS


@pytest.mark.parametrize(
    ("reason", "reading"),
    [(reason, reading) for reason, readings in NEARLY_BROKEN.items() for reading in readings]
    + [(reason, reading) for reason in _PAGE_REASONS for reading in examples(reason, "keep")],
    ids=lambda value: value if isinstance(value, str) else value.text[:30],
)
def test_a_document_that_only_looks_like_one_is_kept(reason: str, reading: Reading):
    """Useful text is never rejected by the defaults."""
    assert judge(reading, DEFAULTS).structural_filter is None
    if reason != "empty":
        assert _first(judge(reading, DEFAULTS)) is None


@pytest.mark.parametrize("reason", SIZE_AND_LANGUAGE)
def test_size_and_language_are_judged_by_the_fast_filter(reason: str):
    """A tie goes to the document."""
    options, rejected, kept = SIZE_AND_LANGUAGE[reason]

    assert [_first(judge(reading, options)) for reading in rejected] == [reason] * len(rejected)
    assert [_first(judge(reading, options)) for reading in kept] == [None] * len(kept)


def test_without_an_allowed_list_no_language_is_rejected():
    """The default is every language, however uncertain."""
    options = AdmissionOptions(language=LanguageOptions(min_confidence=1.0, uncertain="reject"))

    assert all(
        judge(plain(text), options).fast_filter is None for text in (RUSSIAN, ARABIC, CHINESE, "x1 " * 90)
    )


def test_a_short_sentence_is_kept_only_while_sentences_count():
    """Whoever wants a hundred characters whatever they say turns the exception off."""
    reading = page("The bridge is closed tonight because of strong wind.")

    assert judge(reading, DEFAULTS).fast_filter is None
    assert _first(judge(reading, AdmissionOptions(short_text_words=0))) == "too_short"


def test_both_filters_speak_whatever_the_first_one_said():
    """Who decides about duplicates in between needs both."""
    judgement = judge(page("{{ name }}\n{{ id }}\n{{ total }}"), DEFAULTS)

    assert judgement.fast_filter is not None
    assert judgement.structural_filter is not None


def _first(judgement: Judgement) -> str | None:
    finding = judgement.fast_filter or judgement.structural_filter
    return finding.reason if finding else None

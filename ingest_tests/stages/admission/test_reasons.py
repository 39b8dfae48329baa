"""Every reason to reject a document: real pages that it applies to, and pages that only look similar."""

from typing import get_args

import pytest

from ingest_assets.settings.admission import AdmissionOptions, LanguageOptions, Reason
from ingest_assets.stages.admission.document_text import DocumentText
from ingest_assets.stages.admission.judge import Judgement, judge
from ingest_tests.stages.admission.broken import ARABIC, BROKEN, CHINESE, ENGLISH, NEARLY_BROKEN, RUSSIAN
from ingest_tests.stages.admission.pages import DEFAULTS, EXAMPLES, examples, page, plain

_PAGE_REASONS = sorted(path.stem for path in EXAMPLES.glob("*.txt"))
_GERMAN = "Die Hängebrücke wurde 1932 eröffnet. Die Seile sind in gutem Zustand, das Deck hat Risse. "
_ENGLISH_ONLY = AdmissionOptions(language=LanguageOptions(allowed=("en",)))
_CERTAINLY_ENGLISH = AdmissionOptions(language=LanguageOptions(allowed=("en",), uncertain="reject"))
_SMALL = AdmissionOptions(max_chars=200)
_TABLE = page("| 12 | 9.5 | 7 |\n| 14 | 9.7 | 8 |\n" * 20)

# Reasons of the fast filter: options, documents they reject, documents they keep.
SIZE_AND_LANGUAGE: dict[str, tuple[AdmissionOptions, list[DocumentText], list[DocumentText]]] = {
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
    """Duplicates need several documents; their examples are in the tests of claims."""
    reasons = set(get_args(Reason)) - {"duplicate", "near_duplicate"}

    assert reasons == set(BROKEN) | set(SIZE_AND_LANGUAGE) | (set(_PAGE_REASONS) - {"useful"})
    assert set(BROKEN) == set(NEARLY_BROKEN)
    assert all(examples(reason, "keep") for reason in _PAGE_REASONS)
    assert all(examples(reason, "reject") for reason in _PAGE_REASONS if reason != "useful")


@pytest.mark.parametrize(
    ("reason", "document"),
    [(reason, document) for reason, documents in BROKEN.items() for document in documents]
    + [(reason, document) for reason in _PAGE_REASONS for document in examples(reason, "reject")],
    ids=lambda value: value if isinstance(value, str) else value.text[:30],
)
def test_a_page_without_content_is_rejected_for_its_reason(reason: str, document: DocumentText):
    """With the measured figure and the limit."""
    rejection = judge(document, DEFAULTS).structural_filter

    assert rejection is not None
    assert rejection.reason == reason
    assert (rejection.figure < rejection.limit) == (
        reason in ("empty", "entropy_too_low")
    ) or reason in _PAGE_REASONS


@pytest.mark.parametrize(
    ("reason", "document"),
    [(reason, document) for reason, documents in NEARLY_BROKEN.items() for document in documents]
    + [(reason, document) for reason in _PAGE_REASONS for document in examples(reason, "keep")],
    ids=lambda value: value if isinstance(value, str) else value.text[:30],
)
def test_a_document_that_only_looks_similar_is_kept(reason: str, document: DocumentText):
    """Useful text is never rejected by the defaults."""
    assert judge(document, DEFAULTS).structural_filter is None
    if reason != "empty":
        assert _first(judge(document, DEFAULTS)) is None


@pytest.mark.parametrize("reason", SIZE_AND_LANGUAGE)
def test_size_and_language_are_judged_by_the_fast_filter(reason: str):
    """A figure equal to the limit is accepted."""
    options, rejected, admitted = SIZE_AND_LANGUAGE[reason]

    assert [_first(judge(document, options)) for document in rejected] == [reason] * len(rejected)
    assert [_first(judge(document, options)) for document in admitted] == [None] * len(admitted)


def test_without_an_allowed_list_no_language_is_rejected():
    """The default is every language, however uncertain."""
    options = AdmissionOptions(language=LanguageOptions(min_confidence=1.0, uncertain="reject"))

    assert all(
        judge(plain(text), options).fast_filter is None for text in (RUSSIAN, ARABIC, CHINESE, "x1 " * 90)
    )


def test_a_short_sentence_is_kept_unless_the_exception_is_off():
    """`short_text_words = 0` rejects every short text."""
    document = page("The bridge is closed tonight because of strong wind.")

    assert judge(document, DEFAULTS).fast_filter is None
    assert _first(judge(document, AdmissionOptions(short_text_words=0))) == "too_short"


def test_both_filters_run_even_if_the_first_one_rejects():
    """The check for duplicates between them needs both results."""
    judgement = judge(page("{{ name }}\n{{ id }}\n{{ total }}"), DEFAULTS)

    assert judgement.fast_filter is not None
    assert judgement.structural_filter is not None


def _first(judgement: Judgement) -> str | None:
    rejection = judgement.fast_filter or judgement.structural_filter
    return rejection.reason if rejection else None

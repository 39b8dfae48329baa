"""Each rule by itself: it rejects its own examples only, reports its figure, and obeys its settings."""

import pytest

from ingest_assets.settings.admission import StructureOptions
from ingest_assets.stages.admission import rules
from ingest_assets.stages.admission.document_text import DocumentText
from ingest_assets.stages.admission.facts import Facts
from ingest_assets.stages.admission.rules import RULES, Rule
from ingest_tests.stages.admission.broken import BROKEN, ENGLISH, NEARLY_BROKEN, as_glyphs
from ingest_tests.stages.admission.pages import EXAMPLES, LIMITS, examples, facts, page, plain

_NAMES = [rule.__name__ for rule in RULES]


def _rejected(reason: str) -> list[DocumentText]:
    return BROKEN.get(reason) or examples(reason, "reject")


def _kept(reason: str) -> list[DocumentText]:
    return NEARLY_BROKEN.get(reason) or examples(reason, "keep")


def test_every_rule_is_named_after_its_reason():
    """One rule, one reason, one set of examples."""
    assert set(_NAMES) == set(BROKEN) | ({path.stem for path in EXAMPLES.glob("*.txt")} - {"useful"})


@pytest.mark.parametrize("rule", RULES, ids=_NAMES)
def test_a_rule_rejects_its_own_examples_only(rule: Rule):
    """Even if no other rule ran before it."""
    rejections = [rule(Facts(document), LIMITS) for document in _rejected(rule.__name__)]

    assert all(rejection and rejection.reason == rule.__name__ for rejection in rejections)
    assert not any(rule(Facts(document), LIMITS) for document in _kept(rule.__name__))
    assert not any(rule(Facts(document), LIMITS) for document in examples("useful", "keep"))


@pytest.mark.parametrize("rule", RULES, ids=_NAMES)
def test_a_rule_accepts_ordinary_text(rule: Rule):
    """Whatever its length."""
    assert rule(facts(plain(ENGLISH)), LIMITS) is None
    assert rule(facts(page("\n".join(f"{number}. {ENGLISH}" for number in range(300)))), LIMITS) is None


@pytest.mark.parametrize(
    ("rule", "document", "figure"),
    [
        (rules.empty, page("---"), 0),
        (rules.corrupt_text, plain("a\ufffd" * 200), 0.5),
        (rules.garbled_glyphs, plain(as_glyphs("abcd ef")), 1.0),
        (rules.entropy_too_low, plain("a" * 300), 0.0),
        (rules.too_many_digits, plain("12345 " * 100), 1.0),
        (rules.repeated_lines, page("Wait for the next page.\n" * 10), 0.9),
        (rules.error_page, page("# 404\nPage not found\nReturn to the homepage"), 1.0),
        (rules.template_page, page("TBD\nTBD\nTODO\nNotes"), 0.75),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_rejection_has_the_measured_figure(rule: Rule, document: DocumentText, figure: float):
    """Users can see how close it is to the limit."""
    rejection = rule(Facts(document), LIMITS)

    assert rejection is not None
    assert rejection.figure == pytest.approx(figure)


@pytest.mark.parametrize(
    ("rule", "loose"),
    [
        (rules.corrupt_text, {"max_corrupt_share": 1.0}),
        (rules.garbled_encoding, {"max_mojibake_share": 1.0}),
        (rules.garbled_glyphs, {"max_glyph_share": 1.0}),
        (rules.garbled_words, {"max_unsayable_share": 1.0, "max_broken_word_share": 1.0}),
        (rules.entropy_too_low, {"min_entropy": 0}),
        (rules.entropy_too_high, {"max_entropy": 32}),
        (rules.too_many_symbols, {"max_symbol_share": 1.0}),
        (rules.too_many_digits, {"max_digit_share": 1.0}),
        (rules.repeated_lines, {"max_repeated_share": 1.0}),
        (rules.error_page, {"max_page_chars": 0}),
        (rules.login_page, {"max_page_chars": 0}),
        (rules.boilerplate_page, {"max_page_chars": 0}),
        (rules.metadata_only, {"max_page_chars": 0}),
        (rules.navigation_page, {"min_links": 10_000}),
        (rules.link_list, {"min_links": 10_000}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_setting_turns_a_rule_off(rule: Rule, loose: dict[str, float]):
    """Every limit has a value that no document exceeds."""
    limits = StructureOptions.model_validate(loose)

    assert not any(rule(Facts(document), limits) for document in _rejected(rule.__name__))


def test_an_error_page_with_other_text_is_kept():
    """The same error page below a short article is an article."""
    error = "# 404\nThe page you requested was not found on this server.\nPlease check the URL."

    assert rules.error_page(facts(error), LIMITS) is not None
    assert rules.error_page(facts(f"{error}\n{ENGLISH}"), LIMITS) is None


def test_menus_around_an_error_do_not_hide_it():
    """Sites show their errors between their usual menus."""
    menu = "\n".join(f"[Entry number {number}]" for number in range(60))
    error = "# 404\nThe page you requested was not found on this server.\nPlease check the URL."

    assert rules.error_page(facts(f"{menu}\n{error}\n{menu}"), LIMITS) is not None

"""Each rule by itself: its own examples and nobody else's, its figure, and what its settings change."""

import pytest

from ingest_assets.settings.admission import StructureOptions
from ingest_assets.stages.admission import rules
from ingest_assets.stages.admission.facts import Facts
from ingest_assets.stages.admission.reading import Reading
from ingest_assets.stages.admission.rules import RULES, Rule
from ingest_tests.stages.admission.broken import BROKEN, ENGLISH, NEARLY_BROKEN, as_glyphs
from ingest_tests.stages.admission.pages import EXAMPLES, LIMITS, examples, facts, page, plain

_NAMES = [rule.__name__ for rule in RULES]


def _rejected(reason: str) -> list[Reading]:
    return BROKEN.get(reason) or examples(reason, "reject")


def _kept(reason: str) -> list[Reading]:
    return NEARLY_BROKEN.get(reason) or examples(reason, "keep")


def test_every_rule_is_named_after_its_reason():
    """One rule, one reason, one set of examples."""
    assert set(_NAMES) == set(BROKEN) | ({path.stem for path in EXAMPLES.glob("*.txt")} - {"useful"})


@pytest.mark.parametrize("rule", RULES, ids=_NAMES)
def test_a_rule_objects_to_its_own_examples_only(rule: Rule):
    """Also when no other rule was asked before."""
    found = [rule(Facts(reading), LIMITS) for reading in _rejected(rule.__name__)]

    assert all(finding and finding.reason == rule.__name__ for finding in found)
    assert not any(rule(Facts(reading), LIMITS) for reading in _kept(rule.__name__))
    assert not any(rule(Facts(reading), LIMITS) for reading in examples("useful", "keep"))


@pytest.mark.parametrize("rule", RULES, ids=_NAMES)
def test_a_rule_is_silent_about_ordinary_text(rule: Rule):
    """Whatever its length."""
    assert rule(facts(plain(ENGLISH)), LIMITS) is None
    assert rule(facts(page("\n".join(f"{number}. {ENGLISH}" for number in range(300)))), LIMITS) is None


@pytest.mark.parametrize(
    ("rule", "reading", "figure"),
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
def test_a_finding_gives_the_figure_it_judged_by(rule: Rule, reading: Reading, figure: float):
    """So that a user can see how close it was."""
    finding = rule(Facts(reading), LIMITS)

    assert finding is not None
    assert finding.figure == pytest.approx(figure)


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
    """Every limit has a value at which nothing breaks it."""
    limits = StructureOptions.model_validate(loose)

    assert not any(rule(Facts(reading), limits) for reading in _rejected(rule.__name__))


def test_rest_decides_whether_a_page_is_kept():
    """The same error page below a short article is an article."""
    error = "# 404\nThe page you requested was not found on this server.\nPlease check the URL."

    assert rules.error_page(facts(error), LIMITS) is not None
    assert rules.error_page(facts(f"{error}\n{ENGLISH}"), LIMITS) is None


def test_menus_around_an_error_do_not_hide_it():
    """Sites show their errors inside all of their furniture."""
    menu = "\n".join(f"[Entry number {number}]" for number in range(60))
    error = "# 404\nThe page you requested was not found on this server.\nPlease check the URL."

    assert rules.error_page(facts(f"{menu}\n{error}\n{menu}"), LIMITS) is not None

"""The whole judgement: it never fails, is always the same, and its figures are correct."""

import json
import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.settings.admission import AdmissionOptions, QualityOptions
from ingest_assets.stages.admission.document_text import Block, DocumentText
from ingest_assets.stages.admission.judge import judge, size_class
from ingest_tests.conftest import examples_times
from ingest_tests.stages.admission.broken import BROKEN, ENGLISH, RUSSIAN
from ingest_tests.stages.admission.pages import DEFAULTS, examples, page, plain

_LABELS = st.sampled_from(["text", "title", "section_header", "list_item", "table", "code", "field_value"])
# With surrogates, which occur in broken documents.
_TEXT = st.text(st.characters(codec=None), max_size=200)
_BLOCKS = st.lists(st.builds(Block, _TEXT, _LABELS, st.lists(_TEXT, max_size=2).map(tuple)), max_size=12)


@examples_times(2)
@given(_BLOCKS, st.sampled_from(["text/html", "application/pdf", ""]), st.integers(0, 3), st.none() | _TEXT)
def test_any_document_is_judged_and_always_the_same(
    blocks: list[Block], mime: str, pages: int, title: str | None
):
    """Whatever text a converter returns."""
    documents = [
        DocumentText(tuple(blocks), mime=mime, pages=pages, title=title, address=title or "")
        for _ in range(2)
    ]

    first, second = (judge(document, DEFAULTS) for document in documents)

    assert first == second
    assert 0 <= first.quality.score <= 1
    assert 0 <= first.language_score <= 1
    assert first.entropy >= 0


@pytest.mark.parametrize("text", ["", "a" * 2_000_000, "\ud800" * 1000, " \n" * 100_000, "word " * 300_000])
def test_extreme_texts_are_judged(text: str):
    """Huge lines, no text at all, text that UTF-8 cannot encode."""
    assert judge(plain(text), DEFAULTS).text_hash


def test_other_processes_judge_the_same():
    """Nothing depends on the hash seed of a process."""
    code = (
        "import json, sys; from ingest_tests.stages.admission.pages import DEFAULTS, examples;"
        "from ingest_assets.stages.admission.judge import judge;"
        "print(json.dumps([str(judge(r, DEFAULTS)) for r in examples('useful', 'keep')]))"
    )
    judgements = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code],
                env=os.environ | {"PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for seed in ("1", "2")
    ]

    assert (
        judgements[0]
        == judgements[1]
        == [str(judge(document, DEFAULTS)) for document in examples("useful", "keep")]
    )


def test_a_judgement_can_be_pickled():
    """Workers return it to the coordinator."""
    judgement = judge(plain(ENGLISH), DEFAULTS)

    assert pickle.loads(pickle.dumps(judgement)) == judgement


def test_the_figures_of_an_ordinary_text():
    """These are stored in the table."""
    text = (
        f"# The bridge\n{ENGLISH}\nIt will stay open meanwhile, except for lorries of more than twenty tons."
    )
    judgement = judge(page(text), DEFAULTS)

    assert (judgement.language, judgement.tier_reasons, judgement.size_class) == ("en", (), "small")
    assert judgement.chars == len("".join(text[2:].split()))
    assert judgement.meaningful_chars < judgement.chars
    assert 3.5 < judgement.entropy < 4.8
    assert judgement.quality.score > 0.9


@pytest.mark.parametrize(
    ("chars", "size"),
    [
        (0, "small"),
        (7_999, "small"),
        (8_000, "medium"),
        (30_000, "large"),
        (79_999, "large"),
        (80_000, "huge"),
    ],
)
def test_size_classes_begin_at_their_limits(chars: int, size: str):
    """In characters that are not whitespace."""
    assert size_class(chars) == size


def test_large_isolated_and_poor_documents_are_second_tier():
    """They are admitted, with the reasons for their tier."""
    body = "\n".join(f"Part {number}. {ENGLISH}" for number in range(150))

    assert judge(page(f"# The bridge\n{body}"), DEFAULTS).tier_reasons == ("large",)
    assert judge(plain(ENGLISH * 2), DEFAULTS).tier_reasons == ("isolated",)
    assert judge(page(f"# Slides\n{ENGLISH}", pages=40), DEFAULTS).tier_reasons == ("isolated",)
    assert judge(page("# Duck survey\nWild ducks by year and by lake"), DEFAULTS).tier_reasons == (
        "isolated",
    )
    assert "low_quality" in judge(BROKEN["garbled_glyphs"][0], DEFAULTS).tier_reasons


def test_the_limits_of_the_tiers_are_settings():
    """All documents of a corpus of slides would be isolated."""
    options = AdmissionOptions(
        quality=QualityOptions(isolated_chars=0, isolated_chars_per_page=0, min_score=0)
    )

    assert judge(page("# Duck survey\nWild ducks by year and by lake"), options).tier_reasons == ()


def test_each_defect_lowers_its_part_of_the_quality():
    """Each part measures another defect."""
    good = judge(page(f"# Bridge\n{ENGLISH}\nIt stays."), DEFAULTS).quality
    corrupt = judge(page("# Bridge\n" + ENGLISH.replace("e", "\ufffd") + "\nIt stays."), DEFAULTS).quality
    repeated = judge(page("# Bridge\n" + "It stays open all night.\n" * 40), DEFAULTS).quality
    numbers = judge(page("# 1932\n12 13 14 15 16 17 18 19 20 21\n22 23 24"), DEFAULTS).quality
    labels = judge(page("# Bridge\nDeck\nCable\nPier"), DEFAULTS).quality
    nameless = judge(plain(ENGLISH), DEFAULTS).quality
    foreign = judge(plain(RUSSIAN.encode().decode("cp1252", "replace")), DEFAULTS).quality

    assert corrupt.clean < 0.9 < good.clean
    assert repeated.variety < 0.2 < good.variety
    assert numbers.letters < 0.2 < good.letters
    assert labels.running < 0.2 < good.running
    assert nameless.structure < good.structure
    assert foreign.language < 0.6 < good.language
    assert all(part.score < good.score for part in (corrupt, repeated, numbers, labels, nameless, foreign))

"""Limits of admission and of chunks as settings."""

import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from ingest_assets.core.errors import ConfigError
from ingest_assets.settings.admission import (
    CHECKS,
    SIZE_CLASSES,
    AdmissionOptions,
    LanguageOptions,
    NearDuplicateOptions,
    QualityOptions,
    SizeClass,
    StructureOptions,
)
from ingest_assets.settings.chunks import ChunkOptions, settled

_SECTIONS: list[type[BaseModel]] = [
    AdmissionOptions,
    LanguageOptions,
    StructureOptions,
    QualityOptions,
    NearDuplicateOptions,
]


@pytest.mark.parametrize("section", _SECTIONS, ids=lambda section: section.__name__)
def test_every_limit_is_described_and_its_default_is_valid(section: type[BaseModel]):
    """Settings are read by people; nested sections describe themselves."""
    fields = section.model_fields.values()

    assert all(field.description for field in fields if not isinstance(field.default, BaseModel))
    assert section.model_validate(section().model_dump(mode="json")) == section()


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_meaningful_chars": -1},
        {"max_chars": 0},
        {"unknown": 1},
        {"language": {"allowed": ["english"]}},
        {"language": {"min_confidence": 1.5}},
        {"structure": {"max_symbol_share": -0.1}},
        {"structure": {"max_symbols": 0.1}},
        {"near_duplicates": {"permutations": 0}},
        {"near_duplicates": {"threshold": 0}},
        {"quality": {"min_score": 2}},
    ],
    ids=str,
)
def test_a_limit_out_of_bounds_is_refused(wrong: dict[str, Any]):
    """Rather than to reject everything, or nothing."""
    with pytest.raises(ValidationError):
        AdmissionOptions.model_validate(wrong)


def test_a_misspelt_language_is_refused_with_what_was_expected():
    """A code nobody has would reject the whole corpus."""
    with pytest.raises(ValidationError, match="language code such as en"):
        LanguageOptions(allowed=("eng",))


def test_near_duplicates_are_off_by_default():
    """Only exact ones are certain."""
    assert not AdmissionOptions().near_duplicates.enabled


def test_the_vocabulary_is_complete():
    """The order of the marks is a contract."""
    assert CHECKS == ("fast_filter", "doc_dedup", "structural_filter", "metadata", "admission")
    assert {name for name, _ in SIZE_CLASSES} | {"small"} == set(get_args(SizeClass))


# Chunks and what the embedder reads: the value that a refusal names is one that is taken.

_ADVICE = re.compile(r"^chunks\.(\w+): .* (?:lower|set) it to (\d+)")


@given(
    limit=st.integers(1, 40),
    special=st.integers(0, 3),
    max_tokens=st.none() | st.integers(16, 60),
    overlap=st.none() | st.integers(0, 40),
)
def test_whoever_follows_the_advice_gets_further(
    limit: int, special: int, max_tokens: int | None, overlap: int | None
):
    """Until nothing is refused, or the embedder itself leaves no room."""
    given = {"max_tokens": max_tokens, "overlap_tokens": overlap}
    refusals = []
    while len(refusals) < 3:
        try:
            cut = settled(ChunkOptions(**given), limit, special_tokens=special)
        except ConfigError as error:
            refusals.append(str(error))
        else:
            assert 1 <= cut.max_tokens <= limit
            return
        advice = _ADVICE.match(refusals[-1])
        if advice is None:
            break
        given[advice[1]] = int(advice[2])
    assert limit <= special, refusals
    assert refusals[-1].startswith("embeddings.dense")


@pytest.mark.parametrize("limit", [1, 8, 15])
def test_an_embedder_that_reads_less_than_a_chunk_may_be_is_left_to_the_profile(limit: int):
    """Settings take no such small number, but 0."""
    with pytest.raises(ConfigError, match=rf"more than the {limit} tokens .*; set it to 0"):
        settled(ChunkOptions(max_tokens=16), limit)

    assert settled(ChunkOptions(max_tokens=0), limit).max_tokens == limit


@pytest.mark.parametrize(("limit", "prefix"), [(2, 0), (1, 0), (4, 2)])
def test_an_embedder_that_leaves_no_room_for_text_is_refused(limit: int, prefix: int):
    """Chunks of no token at all cannot be cut."""
    with pytest.raises(ConfigError, match=rf"^embeddings.dense.*reads {limit} tokens"):
        settled(ChunkOptions(), limit, special_tokens=2, prefix_tokens=prefix)

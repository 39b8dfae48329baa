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
from ingest_assets.settings.chunks import ChunkOptions, resolve_options

_SECTIONS: list[type[BaseModel]] = [
    AdmissionOptions,
    LanguageOptions,
    StructureOptions,
    QualityOptions,
    NearDuplicateOptions,
]


@pytest.mark.parametrize("section", _SECTIONS, ids=lambda section: section.__name__)
def test_every_limit_is_described_and_its_default_is_valid(section: type[BaseModel]):
    """The settings page shows the descriptions; nested sections have docstrings."""
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
def test_a_limit_out_of_range_is_rejected(wrong: dict[str, Any]):
    """It would reject all documents, or none."""
    with pytest.raises(ValidationError):
        AdmissionOptions.model_validate(wrong)


def test_a_misspelt_language_is_rejected_with_an_example():
    """An unknown code would reject the whole corpus."""
    with pytest.raises(ValidationError, match="language code such as en"):
        LanguageOptions(allowed=("eng",))


def test_near_duplicates_are_off_by_default():
    """Only exact duplicates are certain."""
    assert not AdmissionOptions().near_duplicates.enabled


def test_checks_and_size_classes_are_complete():
    """The order of the checks is a contract."""
    assert CHECKS == ("fast_filter", "doc_dedup", "structural_filter", "metadata", "admission")
    assert {name for name, _ in SIZE_CLASSES} | {"small"} == set(get_args(SizeClass))


# Chunks and the embedder's token limit: the value that an error suggests is valid.

_ADVICE = re.compile(r"^chunks\.(\w+): .* (?:lower|set) it to (\d+)")


@given(
    limit=st.integers(1, 40),
    special=st.integers(0, 3),
    max_tokens=st.none() | st.integers(16, 60),
    overlap=st.none() | st.integers(0, 40),
)
def test_the_suggested_values_are_accepted(
    limit: int, special: int, max_tokens: int | None, overlap: int | None
):
    """After at most three errors the options are valid, or the embedder has no room for text."""
    options = {"max_tokens": max_tokens, "overlap_tokens": overlap}
    errors = []
    while len(errors) < 3:
        try:
            resolved = resolve_options(ChunkOptions(**options), limit, special_tokens=special)
        except ConfigError as error:
            errors.append(str(error))
        else:
            assert 1 <= resolved.max_tokens <= limit
            return
        advice = _ADVICE.match(errors[-1])
        if advice is None:
            break
        options[advice[1]] = int(advice[2])
    assert limit <= special, errors
    assert errors[-1].startswith("embeddings.dense")


@pytest.mark.parametrize("limit", [1, 8, 15])
def test_for_an_embedder_with_a_very_low_limit_max_tokens_must_be_0(limit: int):
    """Settings reject such a low number, but accept 0."""
    with pytest.raises(ConfigError, match=rf"more than the {limit} tokens .*; set it to 0"):
        resolve_options(ChunkOptions(max_tokens=16), limit)

    assert resolve_options(ChunkOptions(max_tokens=0), limit).max_tokens == limit


@pytest.mark.parametrize(("limit", "prefix"), [(2, 0), (1, 0), (4, 2)])
def test_an_embedder_without_room_for_text_is_rejected(limit: int, prefix: int):
    """A chunk needs at least one token."""
    with pytest.raises(ConfigError, match=rf"^embeddings.dense.*reads {limit} tokens"):
        resolve_options(ChunkOptions(), limit, special_tokens=2, prefix_tokens=prefix)

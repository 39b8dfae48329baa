"""The limits of admission as settings."""

from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

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

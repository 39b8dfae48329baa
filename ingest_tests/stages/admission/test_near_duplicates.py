"""Near duplicates: the estimate is close to the true share, reproducible, and keys find candidates."""

import os
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.settings.admission import NearDuplicateOptions
from ingest_assets.stages.admission.judge import band_keys, rows_per_band, shingles, signature, similarity
from ingest_tests.stages.admission.broken import CHINESE, ENGLISH, THAI

_OPTIONS = NearDuplicateOptions()
_EXACT = NearDuplicateOptions(permutations=512)


def _signed(text: str, options: NearDuplicateOptions = _OPTIONS) -> bytes:
    signed = signature(text, options)
    assert signed is not None
    return signed


def _words(count: int, seed: int) -> list[str]:
    return [f"word{number}" for number in random.Random(seed).sample(range(100_000), count)]


@given(st.integers(60, 300), st.integers(0, 300), st.integers(0, 10_000))
def test_the_estimate_is_close_to_the_true_share(common: int, different: int, seed: int):
    """Within four standard deviations for this number of permutations."""
    words = _words(common + 2 * different, seed)
    left, right = (
        " ".join(words[:common] + words[common + side * different :][:different]) for side in (0, 1)
    )
    sets = [shingles(text, _EXACT.shingle_words) for text in (left, right)]
    truth = len(sets[0] & sets[1]) / len(sets[0] | sets[1])

    estimate = similarity(_signed(left, _EXACT), _signed(right, _EXACT))

    assert estimate == pytest.approx(truth, abs=4 * (truth * (1 - truth) / 512) ** 0.5 + 0.005)


def test_case_punctuation_and_layout_do_not_count():
    """A reprint is the same text."""
    reprint = ENGLISH.upper().replace(". ", " !\n\n")

    assert similarity(_signed(ENGLISH), _signed(reprint)) == 1.0


def test_a_corrected_reprint_is_near_and_another_text_is_not():
    """With the default threshold."""
    long = " ".join(_words(1000, 1))
    corrected = long.replace(long.split()[500], "corrected")

    assert similarity(_signed(long), _signed(corrected)) >= _OPTIONS.threshold
    assert similarity(_signed(long), _signed(" ".join(_words(1000, 2)))) < 0.1


@pytest.mark.parametrize("text", [CHINESE, THAI])
def test_scripts_without_spaces_are_shingled_by_character(text: str):
    """A changed character changes a few shingles, not one long word."""
    repeated = text + text[::-1]

    assert len(shingles(repeated, 5)) > 40
    assert 0.5 < similarity(_signed(repeated), _signed(repeated.replace(text[7], "X", 1))) < 1


def test_texts_without_words_have_no_signature():
    """Two blank pages are not near duplicates."""
    assert signature("", _OPTIONS) is None
    assert signature("--- *** ---", _OPTIONS) is None
    assert shingles("two words", 5) == {"two words"}


def test_a_signature_is_the_same_in_every_process_and_release():
    """It is stored in the ledger. If this value changes, all stored ones become useless."""
    code = (
        "import ingest_tests.stages.admission.test_near_duplicates as near;"
        "signed = near._signed(near.ENGLISH);"
        "print(signed.hex()); print(near.band_keys(signed, near._OPTIONS))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split("\n")[:2] == [_signed(ENGLISH).hex(), str(band_keys(_signed(ENGLISH), _OPTIONS))]
    assert _signed(ENGLISH).hex()[:32] == "38a0bc0ce0fc100396c87703b4ce8e00"


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.9, 1.0])
def test_texts_at_the_threshold_nearly_always_share_a_key(threshold: float):
    """And as few other texts as the permutations allow."""
    rows = rows_per_band(threshold, 128)
    bands = 128 // rows

    assert 1 - (1 - threshold**rows) ** bands >= 0.99
    assert rows == 128 or 1 - (1 - threshold ** (rows + 1)) ** (128 // (rows + 1)) < 0.99


def test_keys_find_near_texts_and_no_others():
    """Each fits a signed 64-bit column."""
    long = " ".join(_words(1000, 1))
    near, far = long.replace(long.split()[500], "corrected"), " ".join(_words(1000, 2))
    keys = [set(band_keys(_signed(text), _OPTIONS)) for text in (long, near, far)]

    assert keys[0] & keys[1]
    assert not keys[0] & keys[2]
    assert all(0 <= key < 2**63 for key in keys[0])
    assert len(keys[0]) == 128 // rows_per_band(_OPTIONS.threshold, 128)


def test_signatures_of_different_lengths_are_not_compared():
    """The settings were changed in between; the stage computes new ones."""
    with pytest.raises(ValueError, match="argument"):
        similarity(_signed(ENGLISH), _signed(ENGLISH, _EXACT))

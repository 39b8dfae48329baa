"""Chunks and what the embedder reads: the value that a refusal names is one that is taken."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.core.errors import ConfigError
from ingest_assets.settings.chunks import ChunkOptions, settled

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

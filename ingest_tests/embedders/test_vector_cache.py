"""The vector cache: exact, and bounded."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest_assets.embedders.cache import VectorCache
from ingest_tests.embedders.cached_vectors import LITTLE, PLENTY, are_same, made_vectors, some_texts


def test_what_comes_back_is_bit_for_bit_what_was_put(cache: VectorCache):
    """Also the numbers that compare in odd ways."""
    odd = np.array([[0.0, -0.0, np.inf, 1e-45], [np.nan, -np.inf, 1.5, 3.4e38]], dtype=np.float32)

    cache.put("model", ["a", "b"], odd)

    assert are_same(cache.get("model", ["b", "a"]), odd[::-1]) == [True, True]


def test_models_do_not_share_vectors(cache: VectorCache):
    """The same text means something else to another model, also when names run together."""
    cache.put("model", ["a text"], made_vectors(1))

    assert cache.get("model a", ["text"]) == [None]
    assert cache.get("other", ["a text"]) == [None]


def test_any_text_is_a_key(cache: VectorCache):
    """Empty, twice in one call, with lone surrogates or zeros."""
    texts = ["", "\ud800", "a\0b", "a", "\ud800"]

    cache.put("model", texts, np.arange(5, dtype=np.float32)[:, None])

    assert [float(v[0]) for v in cache.get("model", texts) if v is not None] == [0, 4, 2, 3, 4]


def test_a_vector_per_text_is_required(cache: VectorCache):
    """A count that does not fit is a mistake of the caller's, not of the disk's."""
    with pytest.raises(ValueError):
        cache.put("model", ["a", "b"], made_vectors(1))


def test_vectors_outlive_the_process_that_made_them(cache_path: Path):
    """A second cache on the same file stands for the next run."""
    first = VectorCache(cache_path, PLENTY)
    first.put("model", some_texts(700), made_vectors(700))
    first.close()
    first.close()

    assert all(are_same(VectorCache(cache_path, PLENTY).get("model", some_texts(700)), made_vectors(700)))


def test_the_oldest_leave_first(cache_path: Path):
    """What was written last stays."""
    cache = VectorCache(cache_path, LITTLE)
    cache.put("model", some_texts(400), made_vectors(400))

    cache.put("model", [f"new {index}" for index in range(300)], made_vectors(300, seed=1))

    kept = [vector is not None for vector in cache.get("model", some_texts(400))]
    assert False in kept
    assert kept == sorted(kept)
    cache.close()
    assert cache_path.stat().st_size <= LITTLE


def test_a_lowered_bound_shrinks_the_file(cache_path: Path):
    """The setting is about the disk, not about a counter."""
    large = VectorCache(cache_path, PLENTY)
    large.put("model", some_texts(3000), made_vectors(3000))
    large.close()
    before = cache_path.stat().st_size

    small = VectorCache(cache_path, LITTLE)
    small.put("model", ["one more"], made_vectors(1, seed=1))
    small.close()

    assert before > 4 * LITTLE
    assert cache_path.stat().st_size <= LITTLE
    found = VectorCache(cache_path, LITTLE).get("model", ["one more"])
    assert are_same(found, made_vectors(1, seed=1)) == [True]


def test_a_put_that_is_larger_than_the_bound_keeps_the_bound(cache_path: Path):
    """One huge document may not fill the disk."""
    cache = VectorCache(cache_path, LITTLE)
    cache.put("model", some_texts(9000), made_vectors(9000))
    cache.put("model", ["last"], made_vectors(1))
    cache.close()

    assert cache_path.stat().st_size <= LITTLE
    assert are_same(VectorCache(cache_path, LITTLE).get("model", ["last"]), made_vectors(1)) == [True]


_SOME = st.lists(st.integers(0, 900).map(str), min_size=1, max_size=300)
_HISTORY = st.lists(st.tuples(st.sampled_from(["put", "get", "reopen"]), _SOME), min_size=1, max_size=12)


@settings(max_examples=25, deadline=None)
@given(history=_HISTORY, bound=st.sampled_from([LITTLE, PLENTY]))
def test_any_history_is_that_of_a_dict_that_forgets_its_oldest(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, list[str]]], bound: int
):
    """What was put last comes back or is gone, and what is gone was written before what is there."""
    path = tmp_path_factory.mktemp("history") / "vectors.sqlite"
    cache, model = VectorCache(path, bound), dict[str, np.ndarray]()
    for number, (act, texts) in enumerate(history):
        if act == "put":
            vectors = made_vectors(len(texts), seed=number)
            cache.put("model", texts, vectors)
            for text, vector in zip(texts, vectors, strict=True):
                model.pop(text, None)
                model[text] = vector
        elif act == "get":
            for text, found in zip(texts, cache.get("model", texts), strict=True):
                assert found is None or found.tobytes() == model[text].tobytes()
        else:
            cache.close()
            cache = VectorCache(path, bound)

    is_there = [vector is not None for vector in cache.get("model", list(model))]
    cache.close()

    assert is_there == sorted(is_there)
    assert all(is_there) or bound == LITTLE
    assert not path.exists() or path.stat().st_size <= bound

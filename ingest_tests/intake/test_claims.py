"""Duplicate claims: the result does not depend on the order, and every affected batch runs again."""

import itertools
import random
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.intake.duplicates import Claim, Claims, SimilarityRule
from ingest_assets.intake.ledger import Ledger


@pytest.fixture
def ledger(ledger_is_at: Path | str) -> Iterator[Ledger]:
    """A new ledger on each database."""
    ledger = Ledger(ledger_is_at)
    yield ledger
    ledger.close()


def claim(seq: int, text: str | None, is_eligible: bool = True) -> Claim:
    """Return the claim of a document with this number."""
    return Claim(f"d{seq}", seq, "basis", text, is_eligible)


def repeats(claims: Claims, *batches: str) -> dict[str, str | None]:
    """Return which document each document of these batches repeats."""
    return {doc_id: s.duplicate_of for batch in batches for doc_id, s in claims.of(batch).items()}


def test_the_lowest_number_wins_in_any_order(ledger: Ledger) -> None:
    """The later document's batch must run again when an earlier document claims the text."""
    claims = Claims(ledger)

    first = claims.replace("late", [claim(7, "text"), claim(8, "text"), claim(9, "other")])
    alone = repeats(claims, "late")
    second = claims.replace("early", [claim(3, "text")])

    assert (first, second) == (set(), {"late"})
    assert alone == {"d7": None, "d8": "d7", "d9": None}
    assert repeats(claims, "early", "late") == {"d3": None, "d7": "d3", "d8": "d3", "d9": None}
    assert ledger.batches().keys() == {"late"}, "only affected batches get a new revision"


def test_when_the_original_is_removed_the_next_document_replaces_it(ledger: Ledger) -> None:
    """Deleted, or changed to another text."""
    claims = Claims(ledger)
    claims.replace("early", [claim(1, "text"), claim(2, "else")])
    claims.replace("late", [claim(5, "text"), claim(6, "text")])

    touched = claims.replace("early", [claim(1, "changed"), claim(2, "else")])

    assert touched == {"late"}
    assert repeats(claims, "late") == {"d5": None, "d6": "d5"}
    assert claims.replace("early", []) == set(), "no other batch repeated those"


def test_a_rejected_document_is_not_an_original(ledger: Ledger) -> None:
    """Otherwise a text could be lost altogether."""
    claims = Claims(ledger)
    claims.replace(
        "a", [claim(1, "text", is_eligible=False), claim(2, "text"), claim(3, "text", is_eligible=False)]
    )

    assert repeats(claims, "a") == {"d1": None, "d2": None, "d3": "d2"}


def test_a_document_without_text_repeats_no_other(ledger: Ledger) -> None:
    """Two empty documents are not duplicates."""
    claims = Claims(ledger)
    claims.replace("a", [claim(1, None), claim(2, None)])

    assert repeats(claims, "a") == {"d1": None, "d2": None}


def test_the_same_claims_again_change_nothing(ledger: Ledger) -> None:
    """A rerun costs only what changed."""
    claims = Claims(ledger)
    claims.replace("a", [claim(1, "text")])
    claims.replace("b", [claim(2, "text")])

    assert claims.replace("a", [claim(1, "text")]) == set()


def test_concurrent_calls_end_like_sequential_ones(ledger: Ledger) -> None:
    """Every document whose status changed belongs to a batch that was returned or settled later."""
    claims = Claims(ledger)
    by_batch = {f"b{n}": [claim(10 * n + k, f"text {k}") for k in range(5)] for n in range(1, 9)}
    threads = [threading.Thread(target=claims.replace, args=each) for each in by_batch.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    found = repeats(claims, *by_batch)
    assert found == {
        f"d{10 * n + k}": None if n == 1 else f"d{10 + k}" for n in range(1, 9) for k in range(5)
    }


ALIKE = SimilarityRule(0.5, lambda a, b: len(set(a) & set(b)) / len(set(a) | set(b)))


def near(seq: int, letters: str, is_eligible: bool = True) -> Claim:
    """Return the claim of a document whose signature is a set of letters; each letter is a band."""
    return Claim(f"d{seq}", seq, "basis", letters, is_eligible, letters.encode(), tuple(letters.encode()))


def near_duplicates(claims: Claims, *batches: str) -> dict[str, str | None]:
    """Return of which document each document of these batches is a near duplicate."""
    return {doc_id: s.near_duplicate_of for batch in batches for doc_id, s in claims.of(batch).items()}


def test_of_similar_documents_the_lowest_number_is_kept(ledger: Ledger) -> None:
    """A chain of small changes keeps its start, as do documents that resemble only a removed one."""
    claims = Claims(ledger)
    claims.replace("late", [near(4, "bcd"), near(5, "cde")], ALIKE)
    first = near_duplicates(claims, "late")

    touched = claims.replace("early", [near(1, "abc")], ALIKE)

    assert first == {"d4": None, "d5": "d4"}
    assert touched == {"late"}
    assert near_duplicates(claims, "early", "late") == {"d1": None, "d4": "d1", "d5": None}
    assert claims.of("late")["d4"].similarity == 0.5
    assert claims.replace("early", [], ALIKE) == {"late"}
    assert near_duplicates(claims, "late") == first


def test_without_a_rule_near_duplicates_are_released(ledger: Ledger) -> None:
    """The setting can be turned off."""
    claims = Claims(ledger)
    claims.replace("a", [near(1, "abc"), near(2, "abcd")], ALIKE)
    assert near_duplicates(claims, "a") == {"d1": None, "d2": "d1"}

    claims.replace("a", [claim(1, "abc"), claim(2, "abcd")])

    assert near_duplicates(claims, "a") == {"d1": None, "d2": None}


near_worlds = st.lists(
    st.tuples(
        st.integers(0, 2), st.text("abcdef", min_size=1, max_size=4).map(lambda t: "".join(sorted(set(t))))
    ),
    min_size=1,
    max_size=10,
)


@given(near_worlds, st.randoms(use_true_random=False), st.sets(st.integers(1, 10), max_size=4))
def test_near_duplicates_do_not_depend_on_the_order(
    world: list[tuple[int, str]], rng: random.Random, deleted: set[int]
) -> None:
    """Also after some documents were added and removed."""
    every = {seq: (f"b{batch}", near(seq, letters)) for seq, (batch, letters) in enumerate(world, start=1)}

    def ends(order: list[str], gone: set[int]) -> dict[str, tuple[str | None, str | None]]:
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger(Path(folder) / "ledger.sqlite")
            claims = Claims(ledger)
            for batch in order:
                claims.replace(batch, [c for _, (b, c) in every.items() if b == batch], ALIKE)
            for batch in order:
                claims.replace(
                    batch, [c for s, (b, c) in every.items() if b == batch and s not in gone], ALIKE
                )
            standing = {i: s for batch in order for i, s in claims.of(batch).items()}
            ledger.close()
        return {i: (s.duplicate_of, s.near_duplicate_of) for i, s in standing.items()}

    batches = ["b0", "b1", "b2"]
    found = ends(rng.sample(batches, 3), deleted)

    stand: list[Claim] = []
    for seq, (_, c) in sorted(every.items()):
        if seq in deleted:
            continue
        same = [
            o
            for o in every.values()
            if o[1].seq < seq and o[1].seq not in deleted and o[1].text_hash == c.text_hash
        ]
        like = [
            o for o in stand if ALIKE.similarity(o.signature or b"", c.signature or b"") >= ALIKE.threshold
        ]
        exact = min((o[1] for o in same), key=lambda o: o.seq).doc_id if same else None
        first = like[0].doc_id if like and not exact else None
        assert found[c.doc_id] == (exact, first)
        stand += [] if exact or first else [c]


worlds = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["x", "y", "z", None]), st.booleans()),
    min_size=1,
    max_size=12,
)


@given(worlds, st.randoms(use_true_random=False), st.lists(st.integers(0, 3), max_size=6))
def test_any_order_of_batches_gives_the_same_result(
    world: list[tuple[int, str | None, bool]], rng: random.Random, again: list[int]
) -> None:
    """A batch keeps the status it read last until it is returned; in the end all are right."""
    by_batch: dict[str, list[Claim]] = {f"b{number}": [] for number in range(4)}
    for seq, (batch, text, is_eligible) in enumerate(world, start=1):
        by_batch[f"b{batch}"].append(claim(seq, text, is_eligible))
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        claims = Claims(ledger)
        known: dict[str, dict[str, str | None]] = {}
        waiting = rng.sample(sorted(by_batch), 4) + [f"b{number}" for number in again]
        for _ in itertools.repeat(None, 100):
            if not waiting:
                break
            batch = waiting.pop(0)
            touched = claims.replace(batch, by_batch[batch])
            known[batch] = repeats(claims, batch)
            waiting += sorted(touched - set(waiting))
        ledger.close()

    assert not waiting
    texts = {c.doc_id: c for each in by_batch.values() for c in each}
    for c in texts.values():
        earlier = [
            o for o in texts.values() if o.text_hash == c.text_hash and o.is_eligible and o.seq < c.seq
        ]
        first = min(earlier, key=lambda o: o.seq).doc_id if earlier and c.text_hash is not None else None
        batch = next(b for b, each in by_batch.items() if c in each)
        assert known[batch][c.doc_id] == first

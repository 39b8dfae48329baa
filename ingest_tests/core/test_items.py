"""The one predicate that says whether an item is already done."""

import pickle

import pytest

from ingest_assets.core.errors import DocumentMissing, ItemError, StageError
from ingest_assets.core.items import Record, WorkItem, is_current, retrying
from ingest_assets.parsing.errors import CorruptDocument, TooManyPages


@pytest.mark.parametrize(
    ("record", "current"),
    [
        (None, False),
        (Record("now", 0), False),
        (Record("now", 1), True),
        (Record("now", 7), True),
        (Record("before", 0), False),
        (Record("before", 7), False),
        (Record("", 7), False),
    ],
)
def test_done_means_equal_fingerprints_and_at_least_one_row(record: Record | None, current: bool) -> None:
    """Never merely that something exists."""
    assert is_current(record, "now") is current
    assert WorkItem("a", "now", record=record).satisfies() is current


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (None, False),
        (CorruptDocument("bad bytes"), True),
        (DocumentMissing("gone"), False),
        (TooManyPages("more than the settings allow"), False),
        (ItemError("nobody knows"), False),
        (ImportError("libGL.so.1 is missing"), False),
        (MemoryError(), False),
        (OSError(28, "No space left on device"), False),
    ],
)
def test_only_bad_input_is_known_to_fail(error: Exception | None, known: bool) -> None:
    """What may be mended outside, a library, a disk, a setting, deserves its next run."""
    record = None if error is None else StageError.of(error, stage="doctags", item_id="a")

    assert WorkItem("a", "now", known_failure=record).is_known_to_fail() is known


def test_a_retry_forgets_the_failures_of_the_named_and_holds_the_others() -> None:
    """Also those with a passing fault; what never failed is as it was, and so is the order."""
    bad, passing = (
        StageError.of(error, stage="doctags", item_id="a") for error in (CorruptDocument("x"), OSError(28))
    )
    failures = {"a": bad, "b": passing, "c": bad, "d": passing, "e": None}
    items = [WorkItem(name, "now", known_failure=failure) for name, failure in failures.items()]

    found = retrying(items, {"a", "b", "e"})

    assert [item.item_id for item in found] == list(failures)
    assert {item.item_id: item.is_known_to_fail() for item in found} == {
        "a": False,
        "b": False,
        "c": True,
        "d": True,
        "e": False,
    }
    assert [item.known_failure for item in found[2:4]] == [bad, passing]
    assert found[4] == items[4]


def test_a_work_item_survives_pickling() -> None:
    """Items travel to worker processes."""
    error = StageError.of(ItemError("bad"), stage="doctags", item_id="a")
    item = WorkItem("docs:é", "f", "c", ("in",), ("out",), {"row": 1}, 2.0, Record("f", 1), error)

    assert pickle.loads(pickle.dumps(item)) == item

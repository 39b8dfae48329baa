"""The predicate for done items, and known failures."""

import pickle

import pytest

from ingest_assets.core.errors import DocumentMissing, ItemError, StageError
from ingest_assets.core.items import Record, WorkItem, is_current, select_for_retry
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
    """An existing row alone is not enough."""
    assert is_current(record, "now") is current
    assert WorkItem("a", "now", record=record).satisfies() is current


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (None, False),
        (CorruptDocument("bad bytes"), True),
        (DocumentMissing("gone"), False),
        (TooManyPages("more than the settings allow"), False),
        (ItemError("unknown"), False),
        (ImportError("libGL.so.1 is missing"), False),
        (MemoryError(), False),
        (OSError(28, "No space left on device"), False),
    ],
)
def test_only_invalid_input_is_known_to_fail(error: Exception | None, known: bool) -> None:
    """A failure that can be fixed outside (a library, a disk, a setting) is retried by the next run."""
    record = None if error is None else StageError.of(error, stage="doctags", item_id="a")

    assert WorkItem("a", "now", known_failure=record).is_known_to_fail() is known


def test_a_retry_clears_the_selected_failures_and_puts_the_others_on_hold() -> None:
    """Also temporary ones. Items that never failed, and the order, do not change."""
    permanent, temporary = (
        StageError.of(error, stage="doctags", item_id="a") for error in (CorruptDocument("x"), OSError(28))
    )
    failures = {"a": permanent, "b": temporary, "c": permanent, "d": temporary, "e": None}
    items = [WorkItem(name, "now", known_failure=failure) for name, failure in failures.items()]

    selected = select_for_retry(items, {"a", "b", "e"})

    assert [item.item_id for item in selected] == list(failures)
    assert {item.item_id: item.is_known_to_fail() for item in selected} == {
        "a": False,
        "b": False,
        "c": True,
        "d": True,
        "e": False,
    }
    assert [item.known_failure for item in selected[2:4]] == [permanent, temporary]
    assert selected[4] == items[4]


def test_a_work_item_survives_pickling() -> None:
    """Items are sent to worker processes."""
    error = StageError.of(ItemError("bad"), stage="doctags", item_id="a")
    item = WorkItem("docs:é", "f", "c", ("in",), ("out",), {"row": 1}, 2.0, Record("f", 1), error)

    assert pickle.loads(pickle.dumps(item)) == item

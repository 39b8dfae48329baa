"""Whose fault it is that a text has no vector: its own, or that of whoever should have made one."""

from collections.abc import Iterator

import pytest

from ingest_assets.core.errors import (
    ContractBroken,
    ItemCancelled,
    ItemError,
    ItemTimeout,
    MemoryExceeded,
    QuarantineFailed,
    StageError,
    SubmitFailed,
    WorkerDied,
    WorkerLost,
    is_for_good,
)
from ingest_assets.embedders import errors

# What the runner may record for any item; the errors of documents' files cannot meet one of chunks.
OF_ANY_ITEM = {
    ContractBroken,
    ItemCancelled,
    ItemTimeout,
    MemoryExceeded,
    QuarantineFailed,
    SubmitFailed,
    WorkerDied,
    WorkerLost,
}
THE_TEXTS_OWN = {"E_TEXT_TOO_LONG", "E_TEXT_WITHOUT_TOKENS"}


def _of_embedding() -> Iterator[type[ItemError]]:
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, ItemError) and kind is not ItemError:
            yield kind


@pytest.mark.parametrize(
    "kind", sorted({*_of_embedding(), *OF_ANY_ITEM}, key=lambda kind: kind.__name__), ids=lambda k: k.__name__
)
def test_only_a_text_that_is_itself_at_fault_fails_for_good(kind: type[ItemError]):
    """All else a run tries again, and it holds a new set back; a new error must be decided on here."""
    record = StageError.of(kind("a fault"), stage="dense", item_id="docs:a")

    assert is_for_good(record) is (record.code in THE_TEXTS_OWN)


def test_an_error_nobody_knows_is_not_the_texts():
    """It is a bug, and bugs are mended."""
    assert not is_for_good(StageError.of(ZeroDivisionError("a bug"), stage="dense", item_id="docs:a"))

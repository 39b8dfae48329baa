"""Which errors are caused by the text itself, and which by the model, the endpoint or the settings."""

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
    is_permanent,
)
from ingest_assets.embedders import errors

# Errors that the runner can record for any item of this stage.
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
def test_only_faults_of_the_text_itself_are_permanent(kind: type[ItemError]):
    """All other failures are retried by the next run and delay a new set. Add each new error to this test."""
    record = StageError.of(kind("a fault"), stage="dense", item_id="docs:a")

    assert is_permanent(record) is (record.code in THE_TEXTS_OWN)


def test_an_unknown_error_is_not_permanent():
    """It is a bug, and bugs get fixed."""
    assert not is_permanent(StageError.of(ZeroDivisionError("a bug"), stage="dense", item_id="docs:a"))

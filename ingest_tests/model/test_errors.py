"""Errors cross process boundaries and end as records."""

import importlib
import json
import pickle
import pkgutil
from collections.abc import Iterator

import pytest

import ingest_assets
from ingest_assets.model.errors import (
    ConfigError,
    DocumentMissing,
    IngestError,
    ItemError,
    ItemTimeout,
    StageError,
)


def every_item_error() -> list[type[ItemError]]:
    """All subclasses that the rooms below the Dagster face define."""
    for room in ("model", "parsing", "stages", "embedders", "storage", "intake", "runner", "backends"):
        package = importlib.import_module(f"{ingest_assets.__name__}.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.rpartition(".")[2] in {"errors", "failures"}:
                importlib.import_module(module.name)
    return sorted({ItemError, *_below(ItemError)}, key=lambda kind: kind.__qualname__)


def _below(kind: type[ItemError]) -> Iterator[type[ItemError]]:
    for child in kind.__subclasses__():
        if child.__module__.startswith("ingest_assets."):
            yield child
            yield from _below(child)


def test_the_search_for_errors_finds_the_parsers_own() -> None:
    """The tests below are worth nothing if the search finds only the base class."""
    names = {kind.__name__ for kind in every_item_error()}

    assert {"ItemError", "ItemTimeout", "DocumentChanged", "PasswordNeeded", "BodyCutOff"} <= names


@pytest.mark.parametrize("kind", every_item_error(), ids=lambda kind: kind.__name__)
def test_an_item_error_survives_pickling(kind: type[ItemError]) -> None:
    """An error that does not unpickle kills a process pool."""
    error = kind("page 3 is damaged: ß", detail={"page": 3})

    back = pickle.loads(pickle.dumps(error))

    assert type(back) is kind
    assert str(back) == "page 3 is damaged: ß"
    assert back.detail == {"page": 3}
    assert (back.category, back.code, back.retryable) == (kind.category, kind.code, kind.retryable)


@pytest.mark.parametrize("kind", every_item_error(), ids=lambda kind: kind.__name__)
def test_a_record_takes_its_class_from_the_errors_type(kind: type[ItemError]) -> None:
    """Classification goes by type, never by message text."""
    record = StageError.of(kind("timeout or maybe not"), stage="doctags", item_id="docs:a.pdf")

    assert (record.category, record.code, record.retryable) == (kind.category, kind.code, kind.retryable)
    assert (record.stage, record.item_id, record.message) == ("doctags", "docs:a.pdf", "timeout or maybe not")


def test_every_code_has_one_class_and_one_category() -> None:
    """A code in the failure inbox must lead back to one kind of fault."""
    meanings: dict[str, set[tuple[str, bool]]] = {}
    for kind in every_item_error():
        meanings.setdefault(kind.code, set()).add((kind.category, kind.retryable))

    assert {code: found for code, found in meanings.items() if len(found) > 1} == {}


def test_a_subclass_inherits_its_parents_class() -> None:
    """A plug-in's own error keeps the promise of the error it refines."""

    class SlowScan(ItemTimeout):
        """Made here."""

    record = StageError.of(SlowScan("late"), stage="doctags", item_id="a")

    assert (record.category, record.code, record.retryable) == ("timeout", "E_TIMEOUT", True)


@pytest.mark.parametrize(
    "error",
    [ValueError("retry me: timeout"), KeyError("x"), ConfigError("bad"), SystemExit(3)],
)
def test_an_unknown_error_is_not_retried(error: BaseException) -> None:
    """Foreign code may say anything in its messages; only types that promise it are tried again."""
    record = StageError.of(error, stage="chunks", item_id="a")

    assert (record.category, record.code, record.retryable) == ("unknown", "E_UNKNOWN", False)
    assert record.message.startswith(type(error).__name__)


def test_detail_is_a_copy() -> None:
    """What the caller does with its dictionary later must not change the error."""
    detail = {"pages": 1}

    error = DocumentMissing("gone", detail=detail)
    detail["pages"] = 2

    assert error.detail == {"pages": 1}


def test_a_record_is_the_same_after_json() -> None:
    """Manifests and footers hold records as JSON."""
    record = StageError.of(
        DocumentMissing("weg: naïve.pdf", detail={"n": [1, 2]}), stage="documents", item_id="ä"
    )

    back = StageError.model_validate(json.loads(json.dumps(record.model_dump(mode="json"))))

    assert back == record


def test_every_item_error_is_an_error_of_this_product() -> None:
    """`except IngestError` at the command line must catch them all."""
    assert all(issubclass(kind, IngestError) for kind in every_item_error())

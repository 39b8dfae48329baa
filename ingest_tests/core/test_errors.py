"""Errors can be pickled and are stored as records."""

import importlib
import json
import pickle
import pkgutil
from collections.abc import Iterator

import pytest

import ingest_assets
from ingest_assets.core.errors import (
    ConfigError,
    DocumentMissing,
    IngestError,
    ItemError,
    ItemTimeout,
    StageError,
)


@pytest.fixture(scope="module")
def kinds() -> list[type[ItemError]]:
    """All item errors of the package; every module is imported here."""
    for module in pkgutil.walk_packages(ingest_assets.__path__, f"{ingest_assets.__name__}."):
        # The fork server's module disables garbage collection when imported.
        if not module.name.endswith((".__main__", ".fork_server")):
            importlib.import_module(module.name)
    return sorted({ItemError, *_below(ItemError)}, key=lambda kind: kind.__qualname__)


def _below(kind: type[ItemError]) -> Iterator[type[ItemError]]:
    for child in kind.__subclasses__():
        if child.__module__.startswith("ingest_assets."):
            yield child
            yield from _below(child)


def test_the_search_for_errors_finds_those_of_parsers(kinds: list[type[ItemError]]) -> None:
    """The tests below need more than the base class."""
    names = {kind.__name__ for kind in kinds}

    assert {"ItemError", "ItemTimeout", "DocumentChanged", "PasswordNeeded", "BodyCutOff"} <= names


def test_every_item_error_survives_pickling(kinds: list[type[ItemError]]) -> None:
    """An error that does not unpickle kills a process pool."""
    errors = [kind("page 3 is damaged: ß", detail={"page": 3}) for kind in kinds]

    back = [pickle.loads(pickle.dumps(error)) for error in errors]

    changed = [old for old, new in zip(errors, back, strict=True) if _facts(old) != _facts(new)]
    assert changed == []


def _facts(error: ItemError) -> tuple[object, ...]:
    return type(error), str(error), error.detail, error.category, error.code, error.retryable


def test_a_record_is_classified_by_the_errors_type(kinds: list[type[ItemError]]) -> None:
    """Never by message text."""
    records = {
        kind: StageError.of(kind("timeout or maybe not"), stage="doctags", item_id="docs:a.pdf")
        for kind in kinds
    }

    expected = {kind: (kind.category, kind.code, kind.retryable) for kind in kinds}
    assert {kind: (r.category, r.code, r.retryable) for kind, r in records.items()} == expected
    assert {(r.stage, r.item_id, r.message) for r in records.values()} == {
        ("doctags", "docs:a.pdf", "timeout or maybe not")
    }


def test_every_code_has_one_class_and_one_category(kinds: list[type[ItemError]]) -> None:
    """A code in the failure inbox must have one meaning."""
    meanings: dict[str, set[tuple[str, bool]]] = {}
    for kind in kinds:
        meanings.setdefault(kind.code, set()).add((kind.category, kind.retryable))

    assert {code: classes for code, classes in meanings.items() if len(classes) > 1} == {}


def test_a_subclass_inherits_category_and_code() -> None:
    """A plug-in's error is classified like the error that it extends."""

    class SlowScan(ItemTimeout):
        """Defined by a plug-in."""

    record = StageError.of(SlowScan("late"), stage="doctags", item_id="a")

    assert (record.category, record.code, record.retryable) == ("timeout", "E_TIMEOUT", True)


@pytest.mark.parametrize(
    "error",
    [ValueError("retry me: timeout"), KeyError("x"), ConfigError("bad"), SystemExit(3)],
)
def test_an_unknown_error_is_not_retried(error: BaseException) -> None:
    """Messages of foreign code do not count; only error types that say so are retried."""
    record = StageError.of(error, stage="chunks", item_id="a")

    assert (record.category, record.code, record.retryable) == ("unknown", "E_UNKNOWN", False)
    assert record.message.startswith(type(error).__name__)


def test_detail_is_a_copy() -> None:
    """Later changes of the caller's dictionary must not change the error."""
    detail = {"pages": 1}

    error = DocumentMissing("gone", detail=detail)
    detail["pages"] = 2

    assert error.detail == {"pages": 1}


def test_a_record_is_the_same_after_json() -> None:
    """Manifests and footers store records as JSON."""
    record = StageError.of(
        DocumentMissing("weg: naïve.pdf", detail={"n": [1, 2]}), stage="documents", item_id="ä"
    )

    back = StageError.model_validate(json.loads(json.dumps(record.model_dump(mode="json"))))

    assert back == record


def test_every_item_error_is_an_error_of_this_product(kinds: list[type[ItemError]]) -> None:
    """`except IngestError` at the command line must catch them all."""
    assert all(issubclass(kind, IngestError) for kind in kinds)

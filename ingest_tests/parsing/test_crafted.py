"""Files made to do harm end with their exact code, or are read and say what was left out."""

import pytest

from ingest_assets.core.errors import ItemError
from ingest_tests.parsing.conftest import Read
from ingest_tests.parsing.hostile.crafted import CRAFTED, Crafted


@pytest.mark.parametrize("crafted", CRAFTED, ids=lambda crafted: crafted.name)
def test_a_crafted_file_ends_as_it_must(read: Read, crafted: Crafted) -> None:
    """In one line, without a path."""
    ending, words = _ending(read, crafted)

    assert ending == crafted.code, words
    assert any(word.startswith(crafted.warning) for word in words) or not crafted.warning
    assert not any("\n" in word or "content-addressed" in word for word in words)


def _ending(read: Read, crafted: Crafted) -> tuple[str, tuple[str, ...]]:
    try:
        return "ok", read(crafted.name, crafted.content()).warnings
    except ItemError as error:
        return error.code, (str(error),)


def test_each_name_is_there_once() -> None:
    """Two files of one name would be one in a folder."""
    assert len({crafted.name for crafted in CRAFTED}) == len(CRAFTED)

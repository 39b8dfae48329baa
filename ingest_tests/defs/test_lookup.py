"""A mapping that looks its values up when they are asked for."""

import pytest

from ingest_assets.defs.lookup import Lookup


def test_only_what_is_asked_for_is_looked_up_and_each_time_anew():
    """A look may cost the disk, and what it finds may have changed since."""
    looks: list[str] = []

    def look_up(key: str) -> str:
        looks.append(key)
        return f"{key} {len(looks)}"

    found = Lookup(["a", "b"], look_up)

    assert ("a" in found, "c" in found, list(found), len(found)) == (True, False, ["a", "b"], 2)
    assert looks == []
    assert (found["b"], found["b"], found.get("c")) == ("b 1", "b 2", None)
    assert looks == ["b", "b"]
    with pytest.raises(KeyError):
        found["c"]

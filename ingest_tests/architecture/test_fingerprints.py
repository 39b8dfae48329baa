"""A home of an earlier version opens, and a change of our code recomputes nothing in it."""

from pathlib import Path

import pytest

from ingest_assets.app.home import open_home
from ingest_assets.core.identity import canonical_json, sha256_text

# Hashes of each stage with default settings: its version, its options and the names of its libraries. A
# change here makes every home recompute that stage, so it must be listed in the change log.
FINGERPRINTED = {
    "documents": "946da5ed33046f7a",
    "doctags": "b5c9ea1d7a530e31",
    "admission": "69d95cedae6869cd",
    "chunks": "40678a80d5224865",
    "dense": "406913ad7df57229",
    "lexical": "b6c1f513409a2c70",
}


@pytest.mark.parametrize("stage", FINGERPRINTED)
def test_fingerprint_inputs_do_not_change(stage: str, tmp_path: Path):
    """A renamed option or a missing library would make every table stale."""
    made = open_home(tmp_path).stages[stage]

    facts = [made.name, made.version, dict(made.config()), sorted(made.libraries())]

    assert sha256_text(canonical_json(facts))[:16] == FINGERPRINTED[stage]


def test_every_stage_is_covered(tmp_path: Path):
    """All stages of the default graph."""
    assert FINGERPRINTED.keys() == open_home(tmp_path).graph.keys()

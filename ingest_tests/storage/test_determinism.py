"""Tables with the same content have the same bytes, whatever their history."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest_assets.core.layout import Layout
from ingest_assets.storage.table import Parts, Table, commit
from ingest_tests.storage.rows import BATCH, SPEC, commit_of, failure, fingerprint_of, rows_of

NAMES = ("docs:a", "docs:b", "docs:ü", "docs:d", "docs:e")
versions = st.tuples(st.integers(1, 3), st.integers(1, 5))
results = versions | st.none()  # None: the item fails
states = st.dictionaries(st.sampled_from(NAMES), results, max_size=5).flatmap(
    lambda state: st.permutations(list(state.items())).map(dict)
)
leftovers = st.dictionaries(st.sampled_from(NAMES), versions, max_size=2)
histories = st.lists(st.tuples(states, leftovers, st.booleans()), min_size=1, max_size=5)

State = dict[str, tuple[int, int] | None]


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the homes of all examples."""
    return tmp_path_factory.mktemp("homes")


def apply(layout: Layout, state: State, *, again: bool) -> Path:
    """Stage missing items (or all) and commit, as a run does."""
    parts = Parts(layout, SPEC, BATCH)
    path = layout.table(SPEC.asset, BATCH)
    stored = Table(SPEC.asset, (path,)).records | parts.records()
    items = {item: fingerprint_of(*version) if version else "broken" for item, version in state.items()}
    for item, version in state.items():
        if version and (again or item not in stored or stored[item].fingerprint != items[item]):
            parts.write(item, items[item], rows_of(item, *version))
    failures = {item: failure(item, "broken") for item, version in state.items() if version is None}
    commit(layout, commit_of(items, failures))
    return path


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(histories)
def test_any_history_ends_in_the_bytes_of_a_fresh_commit(
    homes: Path, history: list[tuple[State, dict[str, tuple[int, int]], bool]]
) -> None:
    """Changes, deletions, failures, new orders, parts of crashed runs, and forced runs."""
    shutil.rmtree(homes)
    lived, fresh = Layout(homes / "lived"), Layout(homes / "fresh")

    for state, left, again in history:
        for item, version in left.items():
            Parts(lived, SPEC, BATCH).write(item, fingerprint_of(*version), rows_of(item, *version))
        table = apply(lived, state, again=again)
    final = history[-1][0]
    reference = apply(fresh, final, again=False)

    assert table.read_bytes() == reference.read_bytes()
    expected = [
        row for item, version in final.items() if version for row in rows_of(item, *version).to_pylist()
    ]
    assert Table(SPEC.asset, (table,)).scan().collect().select("doc_id", "ordinal").rows() == [
        (row["doc_id"], row["ordinal"]) for row in expected
    ]

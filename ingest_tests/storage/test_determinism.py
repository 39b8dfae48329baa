"""However a table came to be, the same content is the same bytes."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest_assets.core.layout import Layout
from ingest_assets.storage.table import Parts, Table, commit
from ingest_tests.storage.rows import BATCH, SPEC, commit_of, failure, mark, rows_of

NAMES = ("docs:a", "docs:b", "docs:ü", "docs:d", "docs:e")
versions = st.tuples(st.integers(1, 3), st.integers(1, 5))
made = versions | st.none()  # None: the item fails
states = st.dictionaries(st.sampled_from(NAMES), made, max_size=5).flatmap(
    lambda state: st.permutations(list(state.items())).map(dict)
)
leftovers = st.dictionaries(st.sampled_from(NAMES), versions, max_size=2)
histories = st.lists(st.tuples(states, leftovers, st.booleans()), min_size=1, max_size=5)

State = dict[str, tuple[int, int] | None]


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where examples make their homes."""
    return tmp_path_factory.mktemp("homes")


def apply(layout: Layout, state: State, *, again: bool) -> Path:
    """Stage what the table lacks (or everything) and commit, as a run does."""
    parts = Parts(layout, SPEC, BATCH)
    path = layout.table(SPEC.asset, BATCH)
    held = Table(SPEC.asset, (path,)).records | parts.records()
    items = {item: mark(*found) if found else "broken" for item, found in state.items()}
    for item, found in state.items():
        if found and (again or item not in held or held[item].fingerprint != items[item]):
            parts.write(item, items[item], rows_of(item, *found))
    failures = {item: failure(item, "broken") for item, found in state.items() if found is None}
    commit(layout, commit_of(items, failures))
    return path


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(histories)
def test_any_history_ends_in_the_bytes_of_a_fresh_commit(
    homes: Path, history: list[tuple[State, dict[str, tuple[int, int]], bool]]
) -> None:
    """Changes, deletions, failures, new orders, parts left by crashed runs, and forced runs."""
    shutil.rmtree(homes)
    lived, fresh = Layout(homes / "lived"), Layout(homes / "fresh")

    for state, left, again in history:
        for item, found in left.items():
            Parts(lived, SPEC, BATCH).write(item, mark(*found), rows_of(item, *found))
        table = apply(lived, state, again=again)
    final = history[-1][0]
    reference = apply(fresh, final, again=False)

    assert table.read_bytes() == reference.read_bytes()
    wanted = [row for item, found in final.items() if found for row in rows_of(item, *found).to_pylist()]
    assert Table(SPEC.asset, (table,)).scan().collect().select("doc_id", "ordinal").rows() == [
        (row["doc_id"], row["ordinal"]) for row in wanted
    ]

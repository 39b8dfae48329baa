"""Batches are limited, in order, and permanent."""

from datetime import UTC, date, datetime

from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.intake.batches import MEBIBYTE, batch_key, cut, next_number
from ingest_assets.settings.intake import BatchLimits
from ingest_tests.intake.conftest import NOW, Watched

DAY = date(2024, 5, 1)
sizes = st.lists(st.integers(0, 3 * MEBIBYTE), max_size=30)
limits = st.builds(BatchLimits, max_documents=st.integers(1, 6), max_mebibytes=st.integers(1, 4))


@given(sizes, limits, st.integers(1, 5))
def test_a_batch_is_within_its_limits_or_one_large_document(
    sizes: list[int], limits: BatchLimits, first: int
) -> None:
    """In order, without gaps, and no batch ends early."""
    keys = list(cut(sizes, limits, DAY, first))

    groups: dict[str, list[int]] = {}
    for key, size in zip(keys, sizes, strict=True):
        groups.setdefault(key, []).append(size)
    most = limits.max_mebibytes * MEBIBYTE
    assert keys == sorted(keys)
    assert list(groups) == [batch_key(DAY, first + n) for n in range(len(groups))]
    for group in groups.values():
        assert len(group) <= limits.max_documents
        assert sum(group) <= most or len(group) == 1
    for group, after in zip(list(groups.values()), list(groups.values())[1:], strict=False):
        assert len(group) == limits.max_documents or sum(group) + after[0] > most


def test_a_key_sorts_by_day_and_number() -> None:
    """So partitions are listed by time in the UI."""
    assert batch_key(DAY, 7) == "2024-05-01-0007"
    assert batch_key(DAY, 10) > batch_key(DAY, 9) > batch_key(date(2024, 4, 30), 9999)


def test_the_next_number_is_free_on_its_day() -> None:
    """Other days do not count, and gaps are not filled."""
    keys = ["2024-05-01-0001", "2024-05-01-0004", "2024-04-30-0009"]

    assert next_number(DAY, keys) == 5
    assert next_number(date(2024, 5, 2), keys) == 1
    assert next_number(DAY, []) == 1


def test_a_document_keeps_its_batch(watched: Watched) -> None:
    """Whatever other documents are added, deleted or changed."""
    for name in ("a.md", "b.md", "c.md"):
        watched.write(name)
    watched.scan(max_documents=2)
    first = {path: d.batch for path, d in watched.known().items()}
    (watched.folder / "a.md").unlink()
    watched.write("b.md", "changed")
    watched.write("0.md")
    watched.now = NOW + 86_400

    watched.scan(max_documents=2)
    watched.write("a.md", "back again")
    watched.scan(max_documents=2)

    batches = {path: d.batch for path, d in watched.known().items()}
    assert first == {"a.md": "2024-05-01-0001", "b.md": "2024-05-01-0001", "c.md": "2024-05-01-0002"}
    assert batches == {**first, "0.md": "2024-05-02-0001"}


def test_the_day_of_a_batch_is_in_utc(watched: Watched) -> None:
    """Machines in two time zones must agree."""
    watched.now = datetime(2024, 5, 1, 23, 59, 59, tzinfo=UTC).timestamp()
    watched.write("a.md")

    assert watched.scan().batches == {"2024-05-01-0001"}


def test_new_documents_get_new_batches(watched: Watched) -> None:
    """An old batch is never filled up: its tables would have to be rebuilt."""
    for name in ("a.md", "b.md"):
        watched.write(name)
        watched.scan()

    assert list(watched.ledger.batches()) == ["2024-05-01-0001", "2024-05-01-0002"]
    assert [d.seq for d in watched.ledger.documents()] == [1, 2]


def test_a_revision_grows_above_all_others(watched: Watched) -> None:
    """The sensor requests only batches above the last revision it has seen."""
    for name in ("a.md", "b.md", "c.md"):
        watched.write(name)
    watched.scan(max_documents=1)
    before = watched.ledger.batches()
    watched.write("b.md", "changed")

    watched.scan(max_documents=1)

    after = watched.ledger.batches()
    assert len(set(before.values())) == 3
    assert after["2024-05-01-0002"] > max(before.values())
    assert {**after, "2024-05-01-0002": before["2024-05-01-0002"]} == before

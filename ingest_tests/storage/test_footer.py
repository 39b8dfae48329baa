"""The footer describes a file without any database."""

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.core.errors import ItemError, StageError
from ingest_assets.core.items import Record
from ingest_assets.storage.parquet import Failure, Footer, read_footer, write_parquet
from ingest_tests.storage.rows import SPEC, failure, rows_of

text = st.text(max_size=12)
details = st.dictionaries(text, st.integers() | text | st.none() | st.lists(st.booleans()), max_size=3)


@st.composite
def footers(draw: st.DrawFn) -> Footer:
    """Draw a footer with any names, in any order."""
    names = draw(st.lists(text, unique=True, max_size=6))
    cut = draw(st.integers(0, len(names)))
    items = {name: Record(draw(text), draw(st.integers(0, 9))) for name in names[:cut]}
    failures = {
        name: Failure(
            draw(text),
            StageError.of(ItemError(draw(text), detail=draw(details)), stage="chunks", item_id=name),
        )
        for name in names[cut:]
    }
    extra = draw(st.dictionaries(st.sampled_from(["family", "model_id"]), text))
    return Footer(draw(text), draw(text), items, failures, extra)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all examples of a property test."""
    return tmp_path_factory.mktemp("footer")


@given(footers())
def test_a_footer_is_read_as_it_was_written(scratch: Path, footer: Footer) -> None:
    """With failures, names in any script, and the order of items."""
    path = scratch / "table.parquet"

    write_parquet(path, SPEC, [], footer.as_metadata())
    read = read_footer(path)

    assert read == footer
    assert read is not None
    assert list(read.items) == list(footer.items)
    assert list(read.failures) == list(footer.failures)


def test_the_footer_has_the_documented_keys(tmp_path: Path) -> None:
    """Other tools read them."""
    path = tmp_path / "table.parquet"
    footer = Footer("7", "abc", {"docs:é": Record("f", 2)}, {"x": failure("x", "g")}, {"family": "dense"})

    write_parquet(path, SPEC, [rows_of("docs:é", 0, 2)], footer.as_metadata())

    metadata = {k.decode(): v.decode() for k, v in pq.read_metadata(path).metadata.items()}
    assert metadata["ingest.schema_version"] == "1"
    assert metadata["ingest.stage_version"] == "7"
    assert metadata["ingest.config_hash"] == "abc"
    assert metadata["ingest.items"] == '[["docs:é","f",2]]'
    assert '"E_UNKNOWN"' in metadata["ingest.failures"]
    assert metadata["ingest.family"] == "dense"


def test_a_message_with_a_lone_surrogate_does_not_cost_the_table(tmp_path: Path) -> None:
    """Errors of libraries can quote broken text; such a document must not stop its batch."""
    path = tmp_path / "table.parquet"
    error = StageError.of(ValueError("cannot read \ud800"), stage="doctags", item_id="a")

    write_parquet(path, SPEC, [], Footer("1", "c", {}, {"a": Failure("f", error)}).as_metadata())

    footer = read_footer(path)
    assert footer is not None
    assert footer.failures["a"].error.message.startswith("ValueError: cannot read ")


def test_a_known_failure_has_the_same_fingerprint() -> None:
    """A changed document gets a new attempt."""
    footer = Footer("1", "c", {}, {"a": failure("a", "then")})

    assert footer.known_failure("a", "then") is not None
    assert footer.known_failure("a", "now") is None
    assert footer.known_failure("b", "then") is None


def test_a_missing_file_has_no_footer(tmp_path: Path) -> None:
    """The table is not built yet."""
    assert read_footer(tmp_path / "none.parquet") is None


@pytest.mark.parametrize("keep", [0, 3, 60, -1, -40])
def test_a_damaged_table_counts_as_missing(tmp_path: Path, keep: int) -> None:
    """Tables are derived: a damaged one is rebuilt."""
    path = tmp_path / "table.parquet"
    write_parquet(path, SPEC, [rows_of("a", 0, 4)], Footer("1", "c", {"a": Record("f", 4)}).as_metadata())
    whole = path.read_bytes()

    path.write_bytes(whole[:keep])

    assert read_footer(path) is None


def test_a_table_of_another_program_or_version_counts_as_missing(tmp_path: Path) -> None:
    """This version cannot continue a table that it did not write."""
    foreign, later = tmp_path / "foreign.parquet", tmp_path / "later.parquet"
    pq.write_table(pa.table({"a": [1]}), foreign)
    write_parquet(later, SPEC, [], {**Footer("1", "c", {}).as_metadata(), "ingest.schema_version": "999"})

    assert read_footer(foreign) is None
    assert read_footer(later) is None


@pytest.mark.parametrize("lost", ["items", "failures", "stage_version"])
def test_an_incomplete_footer_counts_as_missing(tmp_path: Path, lost: str) -> None:
    """Each of these keys is required."""
    path = tmp_path / "table.parquet"
    metadata = Footer("1", "c", {}).as_metadata()
    del metadata[f"ingest.{lost}"]

    write_parquet(path, SPEC, [], metadata)

    assert read_footer(path) is None


def test_a_footer_is_cached_until_the_file_is_replaced(tmp_path: Path) -> None:
    """Plans and checks read the same footers often."""
    path = tmp_path / "table.parquet"
    first, second = Footer("1", "c", {"a": Record("f", 1)}), Footer("1", "c", {"a": Record("g", 1)})
    write_parquet(path, SPEC, [rows_of("a", 1, 1)], first.as_metadata())
    _wait_for_a_later_clock(path)

    before = read_footer(path)
    write_parquet(path, SPEC, [rows_of("a", 1, 1)], second.as_metadata())

    assert before == first
    assert read_footer(path) == second
    _wait_for_a_later_clock(path)
    assert read_footer(path) is read_footer(path)


def test_a_file_replaced_within_a_tick_of_the_clock_is_read_again(tmp_path: Path) -> None:
    """It has the same name and size, and perhaps the same inode and time."""
    path = tmp_path / "table.parquet"

    for number in range(50):
        footer = Footer("1", "c", {"a": Record(f"{number:02}", 1)})
        write_parquet(path, SPEC, [rows_of("a", 1, 1)], footer.as_metadata(), waits=False)
        assert read_footer(path) == footer


def _wait_for_a_later_clock(path: Path) -> None:
    """Wait until the clock shows a later time than that of the file."""
    while time.time() - path.stat().st_ctime < 1.1:
        time.sleep(0.1)

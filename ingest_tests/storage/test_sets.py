"""Sets of a family: one serves whole at any moment, whatever happens while they change places."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ingest_assets.core.layout import Layout
from ingest_assets.storage.model_sets import UNKNOWN, Family, SetMark, exchange
from ingest_assets.storage.table import commit
from ingest_tests.storage.conftest import Child
from ingest_tests.storage.rows import commit_of, failure, mark
from ingest_tests.storage.set_tables import ASSET, BATCHES, fill, seen, write

# Every fork dies at another step; what it leaves is put right by the parent, as the next run does.
DIES_AT_EVERY_STEP = """
import itertools, os, shutil, signal, sys
from pathlib import Path
from ingest_assets.storage import model_sets as sets
from ingest_assets.core.layout import Layout

template, there, asset = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

def die_at(number):
    steps = itertools.count(1)
    def mortal(step):
        def taken(*arguments, **options):
            last = next(steps) == number
            if last and number % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return step(*arguments, **options)
            finally:
                if last:
                    os.kill(os.getpid(), signal.SIGKILL)
        return taken
    for name in ("replace", "unlink", "rmdir", "fsync"):
        setattr(os, name, mortal(getattr(os, name)))
    sets.exchange = mortal(sets.exchange) if sys.argv[4] == "exchange" else lambda one, other: False

for number in itertools.count(1):
    shutil.rmtree(there, ignore_errors=True)
    shutil.copytree(template, there)
    family = sets.Family(Layout(there), asset)
    child = os.fork()
    if child == 0:
        die_at(number)
        family.cut_over(sets.SetMark("two"))
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print("died" if ended == -9 else f"ended {ended}", flush=True)
    sys.stdin.readline()
    if ended != -9:
        break
"""


def test_the_first_set_serves_at_once_and_the_next_one_waits_beside(layout: Layout) -> None:
    """Whoever reads the family's path never sees two."""
    family = Family(layout, ASSET)

    fill(family, "one", "b1", "b2")
    fill(family, "two", "b1")

    assert seen(family) == {"b1": "one", "b2": "one"}
    assert seen(family, f"{ASSET}@two") == {"b1": "two"}
    assert (family.place("one"), family.place("two")) == (ASSET, f"{ASSET}@two")


def test_cutting_over_keeps_one_set_before_and_removes_a_third(layout: Layout) -> None:
    """So that going back costs nothing, and the disk is bounded."""
    family = Family(layout, ASSET)
    fill(family, "one", "b1", "b2")
    fill(family, "three", "b1")
    fill(family, "two", "b1", "b2")

    family.cut_over(SetMark("two", "model two"))

    assert seen(family) == {"b1": "two", "b2": "two"}
    assert family.beside() == ["one"]
    assert seen(family, f"{ASSET}@one") == {"b1": "one", "b2": "one"}
    assert family.current() == SetMark("two", "model two", previous="one")
    family.cut_over(SetMark("one"))
    assert (seen(family), family.beside()) == ({"b1": "one", "b2": "one"}, ["two"])


@pytest.mark.parametrize("found", [["", ""], ["one", "two"], ["one", ""]], ids=["none", "two", "some"])
def test_tables_that_do_not_agree_on_a_set_are_of_none(layout: Layout, found: list[str]) -> None:
    """From before there were sets: they serve until a whole set takes their place, and are of no use then."""
    family = Family(layout, ASSET)
    for batch, set_id in zip(BATCHES, found, strict=False):
        write(layout, ASSET, batch, set_id)

    before = family.current()
    fill(family, "two", "b1", "b2")
    family.cut_over(SetMark("two"))

    assert before is not None
    assert before.set == UNKNOWN
    assert (seen(family), family.beside()) == ({"b1": "two", "b2": "two"}, [])


def test_a_lost_mark_is_read_from_the_tables_and_written_again(layout: Layout) -> None:
    """Copies often leave hidden files behind."""
    family = Family(layout, ASSET)
    fill(family, "one", "b1", "b2")
    layout.set_mark(ASSET).unlink()

    assert family.place("one") == ASSET
    assert family.place("two") == f"{ASSET}@two"
    family.claim(SetMark("one"))
    assert layout.set_mark(ASSET).is_file()


def test_of_two_that_begin_at_once_only_one_has_the_place(layout: Layout) -> None:
    """Runs with different settings in an empty home."""
    family = Family(layout, ASSET)

    places = [family.claim(SetMark(each)) for each in ("one", "two", "one")]

    assert places == [ASSET, f"{ASSET}@two", ASSET]


def test_a_family_has_rows_when_a_reader_may_find_some(layout: Layout) -> None:
    """A mark promises none, nor does a table of failures; what cannot be read may hold anything."""
    family = Family(layout, ASSET)
    family.claim(SetMark("one"))
    marked = family.has_rows(), family.served()
    lost = {"docs:a": failure("docs:a", mark(1, 2))}
    commit(layout, replace(commit_of({"docs:a": mark(1, 2)}, lost), batch="b1", extra={"set": "one"}))
    failed = family.has_rows(), family.served()
    layout.table(ASSET, "b2").write_bytes(b"damaged")

    assert marked == failed == (False, None)
    assert family.has_rows()
    layout.table(ASSET, "b2").unlink()
    fill(family, "one", "b2")
    assert (family.has_rows(), family.served()) == (True, SetMark("one"))


def test_folders_change_places_in_one_step(tmp_path: Path) -> None:
    """Both names are there at any moment; a missing one is an error, not a reason to go another way."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()

    if not exchange(tmp_path / "one", tmp_path / "two"):
        pytest.skip("this file system cannot")

    assert (tmp_path / "one" / "two").exists()
    assert (tmp_path / "two" / "one").exists()
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "one", tmp_path / "three")


@pytest.mark.parametrize("way", ["exchange", "two renames"])
def test_killed_at_any_step_a_whole_set_serves_and_the_next_run_goes_on(
    tmp_path: Path, child: Child, way: str
) -> None:
    """Power may fail at any step: with one step for both folders not even a reader notices."""
    template, there = tmp_path / "template", tmp_path / "there"
    family = Family(Layout(template), ASSET)
    for set_id in ("one", "two", "three"):
        fill(family, set_id, "b1", "b2")
    old, new = ({"b1": each, "b2": each} for each in ("one", "two"))
    process = child(DIES_AT_EVERY_STEP, template, there, ASSET, way)
    ends = []

    for _ in _deaths(process):
        family = Family(Layout(there), ASSET)
        before = seen(family)
        assert before in ([old, new] if way == "exchange" else [old, new, {}])
        family.recover()
        ends.append(seen(family))
        assert ends[-1] == (new if before == {} else before)
        family.cut_over(SetMark("two")) if ends[-1] == old else None
        assert (seen(family), family.beside(), family.is_torn()) == (new, ["one"], False)
        assert seen(family, f"{ASSET}@one") == old

    assert len(ends) > 10
    assert ends == sorted(ends, key=[old, new].index)


@pytest.mark.parametrize("way", ["exchange", "two renames"])
def test_killed_while_a_set_that_is_not_begun_takes_an_empty_place_it_has_it_in_the_end(
    tmp_path: Path, child: Child, way: str
) -> None:
    """There is no table in either folder, and a mark in each at most."""
    template, there = tmp_path / "template", tmp_path / "there"
    Family(Layout(template), ASSET).claim(SetMark("one"))
    process = child(DIES_AT_EVERY_STEP, template, there, ASSET, way)
    ends = []

    for _ in _deaths(process):
        family = Family(Layout(there), ASSET)
        family.recover()
        ends.append(family.current())
        assert ends[-1] in (SetMark("one"), SetMark("two", previous="one"))
        family.cut_over(SetMark("two")) if family.place("two") != ASSET else None
        fill(family, "two", "b1")
        assert (seen(family), family.beside(), family.is_torn()) == ({"b1": "two"}, ["one"], False)

    assert len(ends) > 5


def _deaths(process: subprocess.Popen[str]) -> Iterator[None]:
    assert process.stdout is not None
    assert process.stdin is not None
    while (said := process.stdout.readline().strip()) == "died":
        yield
        process.stdin.write("\n")
        process.stdin.flush()
    assert said == "ended 0"

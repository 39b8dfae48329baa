"""Model sets of a family: one complete set serves at any time, also during a switch."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ingest_assets.core.layout import Layout
from ingest_assets.storage.model_sets import UNKNOWN, Family, SetState, exchange
from ingest_assets.storage.table import commit
from ingest_tests.storage.conftest import Child
from ingest_tests.storage.rows import commit_of, failure, fingerprint_of
from ingest_tests.storage.set_tables import ASSET, BATCHES, fill, sets_by_batch, write

# Each fork dies at another step; the parent recovers from it, as the next run does.
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
        family.cut_over(sets.SetState("two"))
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print("died" if ended == -9 else f"ended {ended}", flush=True)
    sys.stdin.readline()
    if ended != -9:
        break
"""


def test_the_first_set_serves_at_once_and_the_next_one_is_built_next_to_it(layout: Layout) -> None:
    """The family's path never has tables of two sets."""
    family = Family(layout, ASSET)

    fill(family, "one", "b1", "b2")
    fill(family, "two", "b1")

    assert sets_by_batch(family) == {"b1": "one", "b2": "one"}
    assert sets_by_batch(family, f"{ASSET}@two") == {"b1": "two"}
    assert (family.asset_of("one"), family.asset_of("two")) == (ASSET, f"{ASSET}@two")


def test_a_switch_keeps_the_previous_set_and_removes_others(layout: Layout) -> None:
    """Switching back is cheap, and disk usage is limited."""
    family = Family(layout, ASSET)
    fill(family, "one", "b1", "b2")
    fill(family, "three", "b1")
    fill(family, "two", "b1", "b2")

    family.cut_over(SetState("two", "model two"))

    assert sets_by_batch(family) == {"b1": "two", "b2": "two"}
    assert family.other_sets() == ["one"]
    assert sets_by_batch(family, f"{ASSET}@one") == {"b1": "one", "b2": "one"}
    assert family.current() == SetState("two", "model two", previous="one")
    family.cut_over(SetState("one"))
    assert (sets_by_batch(family), family.other_sets()) == ({"b1": "one", "b2": "one"}, ["two"])


@pytest.mark.parametrize("named", [["", ""], ["one", "two"], ["one", ""]], ids=["none", "two", "some"])
def test_tables_that_do_not_agree_on_a_set_are_of_an_unknown_set(layout: Layout, named: list[str]) -> None:
    """They serve until a complete set replaces them, and are removed then."""
    family = Family(layout, ASSET)
    for batch, set_id in zip(BATCHES, named, strict=False):
        write(layout, ASSET, batch, set_id)

    before = family.current()
    fill(family, "two", "b1", "b2")
    family.cut_over(SetState("two"))

    assert before is not None
    assert before.set == UNKNOWN
    assert (sets_by_batch(family), family.other_sets()) == ({"b1": "two", "b2": "two"}, [])


def test_a_missing_state_file_is_rebuilt_from_the_tables(layout: Layout) -> None:
    """Copies often omit hidden files."""
    family = Family(layout, ASSET)
    fill(family, "one", "b1", "b2")
    layout.set_state(ASSET).unlink()

    assert family.asset_of("one") == ASSET
    assert family.asset_of("two") == f"{ASSET}@two"
    family.claim(SetState("one"))
    assert layout.set_state(ASSET).is_file()


def test_of_two_sets_that_start_together_one_becomes_active(layout: Layout) -> None:
    """Runs with different settings can start in an empty home."""
    family = Family(layout, ASSET)

    assets = [family.claim(SetState(set_id)) for set_id in ("one", "two", "one")]

    assert assets == [ASSET, f"{ASSET}@two", ASSET]


def test_a_family_has_rows_if_a_reader_can_find_some(layout: Layout) -> None:
    """A state file or a table of failures has none; an unreadable table counts as one with rows."""
    family = Family(layout, ASSET)
    family.claim(SetState("one"))
    claimed = family.has_rows(), family.serving()
    failures = {"docs:a": failure("docs:a", fingerprint_of(1, 2))}
    content = commit_of({"docs:a": fingerprint_of(1, 2)}, failures)
    commit(layout, replace(content, batch="b1", extra={"set": "one"}))
    failed = family.has_rows(), family.serving()
    layout.table(ASSET, "b2").write_bytes(b"damaged")

    assert claimed == failed == (False, None)
    assert family.has_rows()
    layout.table(ASSET, "b2").unlink()
    fill(family, "one", "b2")
    assert (family.has_rows(), family.serving()) == (True, SetState("one"))


def test_two_folders_are_swapped_atomically(tmp_path: Path) -> None:
    """Both names always exist; a missing one is an error and not an unsupported system."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()

    if not exchange(tmp_path / "one", tmp_path / "two"):
        pytest.skip("not supported by this file system")

    assert (tmp_path / "one" / "two").exists()
    assert (tmp_path / "two" / "one").exists()
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "one", tmp_path / "three")


@pytest.mark.parametrize("way", ["exchange", "two renames"])
def test_after_a_crash_at_any_step_a_complete_set_serves_and_the_next_run_continues(
    tmp_path: Path, child: Child, way: str
) -> None:
    """With an atomic exchange of both folders, readers never see a missing set."""
    template, home = tmp_path / "template", tmp_path / "home"
    family = Family(Layout(template), ASSET)
    for set_id in ("one", "two", "three"):
        fill(family, set_id, "b1", "b2")
    old, new = ({"b1": set_id, "b2": set_id} for set_id in ("one", "two"))
    process = child(DIES_AT_EVERY_STEP, template, home, ASSET, way)
    ends = []

    for _ in _deaths(process):
        family = Family(Layout(home), ASSET)
        before = sets_by_batch(family)
        assert before in ([old, new] if way == "exchange" else [old, new, {}])
        family.recover()
        ends.append(sets_by_batch(family))
        assert ends[-1] == (new if before == {} else before)
        family.cut_over(SetState("two")) if ends[-1] == old else None
        assert (sets_by_batch(family), family.other_sets(), family.is_interrupted()) == (new, ["one"], False)
        assert sets_by_batch(family, f"{ASSET}@one") == old

    assert len(ends) > 10
    assert ends == sorted(ends, key=[old, new].index)


@pytest.mark.parametrize("way", ["exchange", "two renames"])
def test_after_a_crash_a_switch_between_sets_without_tables_is_completed(
    tmp_path: Path, child: Child, way: str
) -> None:
    """Neither folder has a table; each has at most a state file."""
    template, home = tmp_path / "template", tmp_path / "home"
    Family(Layout(template), ASSET).claim(SetState("one"))
    process = child(DIES_AT_EVERY_STEP, template, home, ASSET, way)
    ends = []

    for _ in _deaths(process):
        family = Family(Layout(home), ASSET)
        family.recover()
        ends.append(family.current())
        assert ends[-1] in (SetState("one"), SetState("two", previous="one"))
        family.cut_over(SetState("two")) if family.asset_of("two") != ASSET else None
        fill(family, "two", "b1")
        assert (sets_by_batch(family), family.other_sets(), family.is_interrupted()) == (
            {"b1": "two"},
            ["one"],
            False,
        )

    assert len(ends) > 5


def _deaths(process: subprocess.Popen[str]) -> Iterator[None]:
    assert process.stdout is not None
    assert process.stdin is not None
    while (line := process.stdout.readline().strip()) == "died":
        yield
        process.stdin.write("\n")
        process.stdin.flush()
    assert line == "ended 0"

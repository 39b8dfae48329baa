"""Sets of a family: one serves whole at any moment, whatever happens while they change places."""

import itertools
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest_assets.storage import sets
from ingest_assets.storage.exchange import exchange
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.parts import Parts
from ingest_assets.storage.sets import UNKNOWN, Family, SetMark, set_of
from ingest_assets.storage.tables import commit
from ingest_tests.storage.conftest import Child
from ingest_tests.storage.rows import SPEC, commit_of, mark, rows_of

ASSET = SPEC.asset
SETS, BATCHES = ("one", "two", "three"), ("b1", "b2", "b3")

# Every fork dies at another step; what it leaves is put right by the parent, as the next run does.
DIES_AT_EVERY_STEP = """
import itertools, os, shutil, signal, sys
from pathlib import Path
from ingest_assets.storage import sets
from ingest_assets.storage.layout import Layout

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


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where examples make their homes."""
    return tmp_path_factory.mktemp("homes")


def write(layout: Layout, asset: str, batch: str, set_id: str) -> None:
    """A table that says which set it is of."""
    spec = replace(SPEC, asset=asset)
    Parts(layout, spec, batch).write("docs:a", mark(1, 2), rows_of("docs:a", 1, 2))
    commit(layout, replace(commit_of({"docs:a": mark(1, 2)}), spec=spec, batch=batch, extra={"set": set_id}))


def fill(family: Family, set_id: str, *batches: str) -> None:
    """What runs with these settings do."""
    for batch in batches:
        write(family.layout, family.claim(SetMark(set_id)), batch, set_id)


def seen(family: Family, asset: str = ASSET) -> dict[str, str]:
    """What a reader finds: batches and the sets they are of."""
    paths = family.layout.asset_folder(asset).glob("*.parquet")
    return {path.stem: found.set for path in paths if (found := set_of(path)) is not None}


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


def _deaths(process: subprocess.Popen[str]) -> Iterator[None]:
    assert process.stdout is not None
    assert process.stdin is not None
    while (said := process.stdout.readline().strip()) == "died":
        yield
        process.stdin.write("\n")
        process.stdin.flush()
    assert said == "ended 0"


class Killed(BaseException):
    """The end of a process, for one that must go on."""


@dataclass
class World:
    """A family, and what each set must hold."""

    family: Family
    holds: dict[str, set[str]] = field(default_factory=lambda: {each: set() for each in SETS})
    serving: str = ""

    def write(self, set_id: str, batch: str) -> None:
        fill(self.family, set_id, batch)
        self.holds[set_id].add(batch)
        self.serving = self.serving or set_id

    def cut_over(self, set_id: str, die_at: int) -> None:
        """As a run does when the set holds all that the serving one does; it may die on the way."""
        if self.serving in ("", set_id) or not self.holds[set_id] >= self.holds[self.serving]:
            return
        old = self.serving
        try:
            with dying(die_at):
                self.family.cut_over(SetMark(set_id))
        except Killed:
            self.family.recover()
        current = self.family.current()
        assert current is not None
        assert current.set in (old, set_id)
        self.serving = current.set
        for each in SETS:
            if each != self.serving and each not in self.family.beside():
                self.holds[each] = set()
        assert old == self.serving or self.holds[old], "the set before is kept"

    def check(self) -> None:
        assert seen(self.family) == dict.fromkeys(self.holds.get(self.serving, ()), self.serving)
        for each in self.family.beside():
            assert seen(self.family, f"{ASSET}@{each}") == dict.fromkeys(self.holds[each], each)
        assert not self.family.is_torn()


class dying:  # noqa: N801 - reads as a sentence
    """Ends what is inside at its Nth durable step, before it for odd numbers and after it for even ones."""

    def __init__(self, die_at: int) -> None:
        self._patch, self._die_at, self._steps = pytest.MonkeyPatch(), die_at, itertools.count(1)

    def __enter__(self) -> None:
        for where, name in ((sets, "_rename"), (sets, "_write"), (sets, "exchange"), (shutil, "rmtree")):
            self._patch.setattr(where, name, self._mortal(getattr(where, name)))

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    def _mortal(self, step):
        def taken(*arguments, **options):
            number = next(self._steps)
            if number == self._die_at and number % 2:
                raise Killed
            answer = step(*arguments, **options)
            if number == self._die_at:
                raise Killed
            return answer

        return taken


events = st.tuples(
    st.sampled_from(["write", "write", "write", "cut over"]),
    st.sampled_from(SETS),
    st.sampled_from(BATCHES),
    st.integers(0, 8),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(events, min_size=3, max_size=16))
def test_whatever_happens_the_family_is_one_whole_set(
    homes: Path, history: list[tuple[str, str, str, int]]
) -> None:
    """Runs with any settings in any order, cut-overs that are killed anywhere, and switching back."""
    shutil.rmtree(homes)
    world = World(Family(Layout(homes / "home"), ASSET))

    for what, set_id, batch, number in history:
        if what == "write":
            world.write(set_id, batch)
        else:
            world.cut_over(set_id, number)
        world.check()

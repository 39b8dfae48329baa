"""Any history of runs and cut-overs, also killed ones, leaves one whole set that serves."""

import itertools
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest_assets.core.layout import Layout
from ingest_assets.storage import model_sets as sets
from ingest_assets.storage.model_sets import Family, SetMark
from ingest_tests.storage.set_tables import ASSET, BATCHES, fill, seen

SETS = ("one", "two", "three")


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where examples make their homes."""
    return tmp_path_factory.mktemp("homes")


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


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(events, min_size=3, max_size=16))
def test_whatever_happens_the_family_is_one_whole_set(
    homes: Path, history: list[tuple[str, str, str, int]]
) -> None:
    """Runs with any settings in any order, cut-overs that are killed anywhere, and switching back."""
    shutil.rmtree(homes, ignore_errors=True)  # an example may write nothing
    world = World(Family(Layout(homes / "home"), ASSET))

    for what, set_id, batch, number in history:
        if what == "write":
            world.write(set_id, batch)
        else:
            world.cut_over(set_id, number)
        world.check()

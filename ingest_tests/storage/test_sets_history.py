"""Any history of runs and switches, also killed ones, leaves one complete active set."""

import itertools
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest_assets.core.layout import Layout
from ingest_assets.storage import model_sets as sets
from ingest_assets.storage.model_sets import Family, SetState
from ingest_tests.storage.set_tables import ASSET, BATCHES, fill, sets_by_batch

SETS = ("one", "two", "three")


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the homes of all examples."""
    return tmp_path_factory.mktemp("homes")


class Killed(BaseException):
    """Simulates the end of the process."""


@dataclass
class World:
    """A family, and the expected batches of each set."""

    family: Family
    holds: dict[str, set[str]] = field(default_factory=lambda: {set_id: set() for set_id in SETS})
    serving: str = ""

    def write(self, set_id: str, batch: str) -> None:
        fill(self.family, set_id, batch)
        self.holds[set_id].add(batch)
        self.serving = self.serving or set_id

    def cut_over(self, set_id: str, die_at: int) -> None:
        """Switch as a run does if the set has all batches of the active one; it can be killed."""
        if self.serving in ("", set_id) or not self.holds[set_id] >= self.holds[self.serving]:
            return
        old = self.serving
        try:
            with dying(die_at):
                self.family.cut_over(SetState(set_id))
        except Killed:
            self.family.recover()
        current = self.family.current()
        assert current is not None
        assert current.set in (old, set_id)
        self.serving = current.set
        for other in SETS:
            if other != self.serving and other not in self.family.other_sets():
                self.holds[other] = set()
        assert old == self.serving or self.holds[old], "the set before is kept"

    def check(self) -> None:
        assert sets_by_batch(self.family) == dict.fromkeys(self.holds.get(self.serving, ()), self.serving)
        for other in self.family.other_sets():
            assert sets_by_batch(self.family, f"{ASSET}@{other}") == dict.fromkeys(self.holds[other], other)
        assert not self.family.is_interrupted()


class dying:  # noqa: N801 - reads as a sentence
    """Raises `Killed` at the Nth durable step, before it for odd numbers and after it for even ones."""

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
def test_after_any_history_the_family_has_one_complete_active_set(
    homes: Path, history: list[tuple[str, str, str, int]]
) -> None:
    """Runs with any settings in any order, switches that are killed anywhere, and switching back."""
    shutil.rmtree(homes, ignore_errors=True)  # an example can write nothing
    world = World(Family(Layout(homes / "home"), ASSET))

    for event, set_id, batch, number in history:
        if event == "write":
            world.write(set_id, batch)
        else:
            world.cut_over(set_id, number)
        world.check()

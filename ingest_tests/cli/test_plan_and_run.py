"""A plan matches the run after it, over many histories of a home with duplicates and rejected documents."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ingest_tests.cli.foretold import World, worth_reading
from ingest_tests.conftest import Command, write_notes
from ingest_tests.intake.fetch.site import Site

pytestmark = pytest.mark.graph  # runs the whole graph many times

GERMAN = "# Bienen\n\nDie Bienen fliegen heute Abend aus allen Stöcken ins Tal und kommen spät zurück.\n"
TABLES = ("documents", "doctags", "admission", "chunks", "embeddings/dense", "embeddings/lexical")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with three notes, a copy of one, one that is too short, and one in German; made once."""
    root = tmp_path_factory.mktemp("made") / "now"
    (root / "home").mkdir(parents=True)
    (root / "home" / "ingest.toml").write_text('[execution]\nrun_on = "inline"\n')
    folder = write_notes(root / "notes")
    (folder / "twin.md").write_text((folder / "swarm.md").read_text())
    (folder / "short.md").write_text("# Hi\n")
    (folder / "german.md").write_text(GERMAN)
    Command(root / "home")("all", "--input", folder)
    shutil.copytree(root, root.parent / "then")
    return root


@pytest.fixture
def world(made: Path) -> Iterator[World]:
    """That home, always at the same path because a home stores paths."""
    shutil.rmtree(made)
    shutil.copytree(made.parent / "then", made)
    with Site().open() as site:
        yield World(Command(made / "home"), made / "notes", site)


def change(name: str) -> Callable[[World], None]:
    """Write another text into a file, which can be new."""
    return lambda world: _write(world, name)


def _write(world: World, name: str) -> None:
    world.write(name, f"# Other\n\n{worth_reading(f'What {name} says now.')}\n")


def delete(name: str) -> Callable[[World], None]:
    """Delete a file."""
    return lambda world: (world.folder / name).unlink()


def lose(*assets: str) -> Callable[[World], None]:
    """Delete tables."""
    return lambda world: [file.unlink() for asset in assets for file in _files(world, asset)] and None


def damage(asset: str) -> Callable[[World], None]:
    """Truncate a table."""
    return lambda world: [file.write_bytes(file.read_bytes()[:100]) for file in _files(world, asset)] and None


def _files(world: World, asset: str) -> list[Path]:
    return list((world.command.home / "data" / asset).glob("*.parquet"))


def both(*histories: Callable[[World], None]) -> Callable[[World], None]:
    """Do one after the other."""
    return lambda world: [each(world) for each in histories] and None


HISTORIES = {
    "one changes": change("feeding.md"),
    "the original of a twin changes": change("swarm.md"),
    "a twin changes": change("twin.md"),
    "a rejected one changes": change("short.md"),
    "the original of a twin goes": delete("swarm.md"),
    "a twin goes": delete("twin.md"),
    "a new one comes": change("new.md"),
    **{f"{asset} is lost": lose(asset) for asset in TABLES},
    **{f"{asset} is damaged": damage(asset) for asset in ("documents", "admission", "chunks")},
    "doctags and admission are lost": lose("doctags", "admission"),
    "admission and chunks are lost": lose("admission", "chunks"),
    "all tables are lost": lose(*TABLES),
    "chunks are lost and one changes": both(lose("chunks"), change("feeding.md")),
    "admission is lost and one goes": both(lose("admission"), delete("swarm.md")),
}

FREE_A_TWIN = {
    "the original of a twin changes",
    "the original of a twin goes",
    "admission is lost and one goes",
}


@pytest.mark.parametrize("history", HISTORIES)
def test_the_run_does_exactly_what_was_planned(world: World, history: str):
    """In no stage more; and then nothing is left to do."""
    HISTORIES[history](world)

    world.agree(freed=int(history in FREE_A_TWIN))

    assert not any(world.command.json("plan")["totals"][step] for step in ("doctags", "chunks", "embeddings"))


@pytest.mark.parametrize(
    "setting",
    [
        {"INGEST_CHUNKS__MAX_TOKENS": "64"},
        {"INGEST_EMBEDDINGS__DENSE__DIM": "64"},
        {"INGEST_EMBEDDINGS__LEXICAL__LANGUAGE": "en"},
        {"INGEST_EMBEDDINGS__LEXICAL__STEMMING": "false"},
        {"INGEST_ADMISSION__NEAR_DUPLICATES__ENABLED": "true"},
    ],
    ids=lambda setting: next(iter(setting)).removeprefix("INGEST_").lower(),
)
def test_a_run_with_other_settings_goes_as_planned(world: World, setting: dict[str, str]):
    """Another model, other rules; the run after that has nothing to do."""
    world.agree(**setting)

    assert world.agree(**setting).scheduled == {}

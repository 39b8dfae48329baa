"""A model switch through the whole graph: interrupted, killed, and by two commands at once."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest_assets.embedders.model_layout import read_layout
from ingest_assets.settings.embeddings import PACKAGED_MODEL
from ingest_assets.storage.model_sets import read_table_set
from ingest_tests.conftest import Command, clean_environment, write_notes
from ingest_tests.end_to_end.test_any_history import Machine

pytestmark = pytest.mark.slow

SETTINGS = """
[sources.notes]
path = "{notes}"
[batches]
max_documents = 2
[execution]
run_on = "inline"
[embeddings.dense]
provider = "local"
model = "{model}"
[embeddings.lexical]
min_term_chars = {chars}
"""
FAMILIES = ("embeddings/dense", "embeddings/lexical")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model of another dimension, with the packaged model's tokenizer."""
    import torch
    from transformers import BertConfig, BertModel

    packaged, folder = Path(read_layout(PACKAGED_MODEL).path), tmp_path_factory.mktemp("tiny")
    for path in packaged.rglob("*"):
        if path.suffix in {".json", ".txt"}:
            (folder / path.relative_to(packaged)).parent.mkdir(exist_ok=True)
            shutil.copy(path, folder / path.relative_to(packaged))
    torch.manual_seed(7)
    vocabulary = json.loads((folder / "config.json").read_text())["vocab_size"]
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=vocabulary, max_position_embeddings=512, **shape)).save_pretrained(folder)
    for path in folder.rglob("1_Pooling/config.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"word_embedding_dimension": 32}))
    return folder


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """Runs commands that can die."""
    machine = Machine()
    yield machine
    machine.close()


def configure(home: Path, notes: Path, model: object = PACKAGED_MODEL, chars: int = 1) -> Command:
    """Return a home with these settings."""
    home.mkdir(exist_ok=True)
    (home / "ingest.toml").write_text(SETTINGS.format(notes=notes, model=model, chars=chars))
    return Command(home)


def served(home: Path) -> dict[str, dict[str, str]]:
    """Return the bytes of every active table, by family."""
    return {
        asset: {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in _tables(home, asset)}
        for asset in FAMILIES
    }


def sets(home: Path, asset: str) -> list[str]:
    """Return the set of each table."""
    return [found.set for path in _tables(home, asset) if (found := read_table_set(path)) is not None]


def _tables(home: Path, asset: str) -> list[Path]:
    return sorted((home / "data" / asset).glob("*.parquet"))


def test_another_model_is_active_when_complete_and_equals_a_clean_rebuild(
    tmp_path: Path, notes: Path, tiny: Path, machine: Machine
):
    """Killed repeatedly on the way: a reader always finds one complete set in each family."""
    home = tmp_path / "home"
    configure(home, notes)
    assert machine.run("all", "--home", home) == 0
    old = served(home)
    assert [len(tables) for tables in old.values()] == [2, 2]

    configure(home, notes, tiny, chars=3)
    configure(tmp_path / "clean", notes, tiny, chars=3)
    assert machine.run("all", "--home", tmp_path / "clean") == 0
    new, deaths = served(tmp_path / "clean"), []
    for die_at in range(25, 400, 30):
        if machine.run("all", "--home", home, die_at=die_at) != -9:
            break
        now = served(home)
        deaths.append({asset: now[asset] == new[asset] for asset in FAMILIES})
        assert all(now[asset] in (old[asset], new[asset]) for asset in FAMILIES)
    assert machine.run("all", "--home", home) == 0

    assert served(home) == new
    assert any(not any(death.values()) for death in deaths), "killed while the old ones served"
    assert all(len(set(sets(home, asset))) == 1 for asset in FAMILIES)


def test_two_commands_at_once_build_one_set_and_activate_it(tmp_path: Path, notes: Path):
    """Neither removes the folder that the other writes to."""
    command = configure(tmp_path / "home", notes)
    command("all", "--until", "chunks")
    command("embed", "--from", "embeddings")
    configure(command.home, notes, chars=4)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    line = command.line("embed", "--from", "embeddings")
    both = [subprocess.Popen(line, env=clean_environment(), **quiet) for _ in range(2)]
    codes = [process.wait(timeout=240) for process in both]

    clean = configure(tmp_path / "clean", notes, chars=4)
    clean("all")
    assert codes == [0, 0]
    assert served(command.home) == served(clean.home)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Four small documents: more than one batch."""
    folder = write_notes(tmp_path / "notes")
    (folder / "wax.md").write_text("# Wax\n\nOld combs are melted in August, when the honey is off.\n")
    return folder

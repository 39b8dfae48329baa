"""README paths and commands rot: each must exist and run."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ingest_assets.app.graph import GRAPH
from ingest_assets.cli.main import COMMANDS, load_command
from ingest_assets.core.schemas import LEXICAL_STATS
from ingest_assets.settings.read import read_settings
from ingest_tests.architecture.test_project import PROJECT
from ingest_tests.conftest import Command, clean_environment, write_notes

README = (PROJECT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Path:
    """A folder in which `demo/` is a home with a few ingested notes."""
    folder = tmp_path_factory.mktemp("readme")
    command = Command(folder / "demo")
    command.home.mkdir()
    command("all", "--input", write_notes(folder / "notes"))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(_blocks("python"))))
def test_every_python_snippet_runs(number: int, demo: Path):
    """People copy these first."""
    code = _blocks("python")[number]
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=demo,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_every_make_target_exists():
    """The two commands above all."""
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), flags=re.MULTILINE))

    assert {"demo", "test"} <= set(re.findall(r"make ([a-z-]+)", README)) - {"alone"} <= targets | {"and"}


def test_every_ingest_command_exists():
    """A renamed command must be renamed here too."""
    known = set()
    for name in COMMANDS:
        below = getattr(load_command(name), "commands", {})
        known |= {f"{name} {command}" for command in below} or {name}
    said = re.findall(
        r"^ingest ((?:queue |failures |models |eval )?[a-z-]+)", "\n".join(_blocks("sh")), flags=re.M
    )

    assert {"all", "up", "status", "queue import", "failures list"} <= set(said) <= known


def test_the_settings_shown_are_accepted(tmp_path: Path):
    """A settings file that is refused is a bad first impression; the blocks fit into one file."""
    shown = "\n".join(_blocks("toml"))
    (tmp_path / "ingest.toml").write_text(shown)

    settings = read_settings(tmp_path)

    assert settings.chunks.max_tokens == tomllib.loads(shown)["chunks"]["max_tokens"]
    assert settings.stages.doctags.execution.num_cpus == 2
    assert settings.features.require_parity


def test_every_path_in_the_layout_exists():
    """And the picture, and the guide."""
    (layout,) = re.findall(r"```\n(ingest_assets/\n.*?)```", README, flags=re.DOTALL)
    top = ""
    for line in layout.splitlines():
        name = line.split()[0]
        top = name if not line.startswith(" ") else top
        assert (PROJECT / (name if not line.startswith(" ") else top + name)).exists(), name
    assert all((PROJECT / path).is_file() for path in re.findall(r"\]\((?!http)(.*?)\)", README))


@pytest.mark.parametrize(
    "spec", [*(node.table for node in GRAPH.values()), LEXICAL_STATS], ids=lambda spec: spec.asset
)
def test_the_columns_listed_are_those_of_the_tables(spec):
    """The column names are a contract."""
    row = next(line for line in README.splitlines() if line.startswith(f"| `{spec.asset}`"))

    assert row.split("|")[3].strip().strip("`").split(", ") == spec.schema.names


def test_make_is_the_way_ci_tests():
    """CI must run what the README tells people to run."""
    script = (PROJECT / ".ci" / "run").read_text()

    targets = set(re.findall(r"^(lint|test[a-z-]*):", (PROJECT / "Makefile").read_text(), flags=re.MULTILINE))
    assert "make " in script
    assert targets <= set(re.findall(r"[a-z-]+", script))
    assert targets <= set(re.findall(r"make ([a-z-]+)", README))

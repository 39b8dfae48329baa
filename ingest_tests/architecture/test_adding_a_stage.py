"""Follow the guide to adding a stage step by step, in a copy of the project."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from ingest_tests.architecture.test_project import PROJECT
from ingest_tests.conftest import clean_environment, write_notes

GUIDE = (PROJECT / "ingest_assets" / "docs" / "adding-a-stage.md").read_text(encoding="utf-8")
COPIED = ("ingest_assets", "ingest_tests", "pyproject.toml", "README.md", "dagster.yaml", "workspace.yaml")
NEW_FILES = dict(re.findall(r"(?ms)^`(ingest_[\w/.]+)`\n\n```python\n(.*?)^```", GUIDE))
CHANGED_FILES = re.findall(r"(?m)^\+\+\+ b/(.+)$", GUIDE)
OWN_TEST = "ingest_tests/stages/test_outlines.py"

LOOK = """
import json, ingest_assets
from ingest_assets.definitions import defs
graph = defs().resolve_asset_graph()
print(json.dumps({
    "package": ingest_assets.__file__,
    "assets": {key.to_user_string(): sorted(above.to_user_string() for above in graph.get(key).parent_keys)
               for key in graph.get_all_asset_keys()},
    "checks": sorted(check.name for check in graph.asset_check_keys
                     if check.asset_key.to_user_string() == "outlines"),
}))
"""


def _blocks(language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", GUIDE)


class Copy:
    """A copy of the project, and commands that import it instead of the project itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *arguments: object, **environment: str) -> str:
        """Return the output of a command in the copy; it must succeed."""
        where = {"PYTHONPATH": str(self.folder), "GIT_CEILING_DIRECTORIES": str(self.folder.parent)}
        done = subprocess.run(
            [*map(str, arguments)],
            cwd=self.folder,
            env=clean_environment() | where | environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def python(self, *arguments: object, **environment: str) -> str:
        """The same for this interpreter."""
        return self.run(sys.executable, *arguments, **environment)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """The project after all steps of the guide."""
    copy = Copy(tmp_path_factory.mktemp("grown") / "project")
    for name in COPIED:
        source, target = PROJECT / name, copy.folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    for path, text in NEW_FILES.items():
        assert not (copy.folder / path).exists(), f"{path} is not new"
        (copy.folder / path).write_text(text, encoding="utf-8")
    for number, diff in enumerate(_blocks("diff")):
        change = copy.folder.parent / f"{number}.diff"
        change.write_text(diff, encoding="utf-8")
        copy.run("git", "apply", change)
    copy.python("-m", "ingest_tests.docs.reference")  # `make docs`
    return copy


@pytest.fixture
def home(grown: Copy, tmp_path: Path) -> Path:
    """A home with the settings that the guide shows."""
    (settings,) = _blocks("toml")
    (tmp_path / "ingest.toml").write_text(settings, encoding="utf-8")
    return tmp_path


def test_every_path_in_the_guide_exists(grown: Copy):
    """A renamed module must be renamed in the guide too."""
    named = set(re.findall(r"`(ingest_\w+/[\w/.]+)`", GUIDE))

    assert {*NEW_FILES} < named
    assert [path for path in sorted(named) if not (grown.folder / path).is_file()] == []


@pytest.mark.slow
def test_the_guides_test_and_the_architecture_tests_pass(grown: Copy):
    """The graph, the rooms and the generated pages are correct for the new stage too."""
    pages = "ingest_tests/docs/test_reference.py::test_a_generated_page_is_up_to_date"
    ours = ["ingest_tests/defs/test_graph.py", "ingest_tests/architecture/test_rooms.py", pages]
    quiet = ["-q", "-p", "no:cacheprovider", "-W", "ignore", f"--basetemp={grown.folder.parent / 'tests'}"]

    said = grown.python("-m", "pytest", *quiet, OWN_TEST, *ours)

    assert re.search(r"(?m)^\d+ passed in ", said)


def test_the_example_passes_the_linters(grown: Copy):
    """People start by copying it."""
    files = [path for path in [*NEW_FILES, *CHANGED_FILES] if path.endswith(".py")]

    grown.python("-m", "ruff", "check", "--no-cache", *files)
    grown.python("-m", "ruff", "format", "--no-cache", "--check", *files)


def test_the_definitions_have_the_new_asset_and_its_checks(grown: Copy, home: Path):
    """As a server would load them, from the copy and not from the installed package."""
    seen = json.loads(grown.python("-c", LOOK, INGEST_HOME=str(home)))

    assert Path(seen["package"]).parent == grown.folder / "ingest_assets"
    assert seen["assets"]["outlines"] == ["doctags"]
    assert seen["checks"] == [
        "every_heading_has_a_level",
        "every_planned_document_has_a_row",
        "ids_are_unique",
        "no_document_failed",
    ]


@pytest.mark.slow
def test_the_new_table_is_written_and_a_second_run_does_nothing(grown: Copy, home: Path):
    """With all other tables, on processes, by `ingest all`."""
    notes = write_notes(home / "notes")
    text = "A frame of brood holds many cells in which larvae grow up."
    (notes / "deep.md").write_text(f"# Hive\n\n## Frames\n\n### Brood\n\n#### Cells\n\n{text}\n")
    ingest = ("-m", "ingest_assets", "all", "--home", home, "--json")

    first = json.loads(grown.python(*ingest, "--input", notes))
    tables = {path: path.read_bytes() for path in sorted((home / "data").rglob("*.parquet"))}
    second = json.loads(grown.python(*ingest))

    assert first["stages"]["outlines"]["succeeded"] == 4
    rows = pl.read_parquet(home / "data" / "outlines" / "*.parquet").sort("doc_id").rows()
    assert rows == [
        ("notes:deep.md", [0, 1, 2], ["Hive", "Frames", "Brood"]),
        ("notes:feeding.md", [0, 1], ["Feeding", "Fondant"]),
        ("notes:swarm.md", [0], ["Swarms"]),
        ("notes:varroa.html", [0], ["Varroa"]),
    ]
    again = {stage: (numbers["scheduled"], numbers["skipped"]) for stage, numbers in second["stages"].items()}
    assert again == dict.fromkeys(first["stages"], (0, 4))
    assert {path: path.read_bytes() for path in tables} == tables

"""Run every command and every Python snippet of README and guides."""

import contextlib
import io
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from ingest_assets.cli.main import run
from ingest_tests.conftest import Command, clean_environment, write_notes
from ingest_tests.docs.pages import PAGES, Block, Page

# The guide to a new stage has a separate test, in a copy of the project.
_EXAMPLES = [page for page in PAGES if page.name != "adding-a-stage.md"]
# Runs until Ctrl-C; `ingest_tests/end_to_end/test_up.py` starts it, uses it and stops it.
_SERVER = ["ingest", "up"]
_LIST = '{"id": "queued", "path": "inbox/queued.md"}\n'


@dataclass(frozen=True)
class Workspace:
    """A reader's folder: a home `demo`, documents, a list, a labelled set."""

    folder: Path

    def restore(self) -> Path:
        """Undo the changes of the last page, at the same path because a home stores paths."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.folder.parent / "kept", self.folder)
        return self.folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Notes, a PDF and a broken one, ingested once for all pages."""
    folder = tmp_path_factory.mktemp("pages") / "place"
    papers = write_notes(folder / "papers")
    for name in ("broken.pdf", "broken-report.pdf"):
        (papers / name).write_bytes(b"%PDF-1.7\ncut off")
    _write_report(papers / "report.pdf")
    (folder / "inbox").mkdir()
    (folder / "inbox" / "queued.md").write_text("# Queue\n\nQueued documents are read like all others.\n")
    (folder / "papers.jsonl").write_text(_LIST, encoding="utf-8")
    _write_labelled_set(folder / "questions")
    _write_truth(folder)
    command = Command(folder / "demo")
    command.home.mkdir()
    (command.home / "ingest.toml").write_text('[execution]\nrun_on = "inline"\n', encoding="utf-8")
    command("all", "--input", papers, check=1)
    shutil.copytree(folder, folder.parent / "kept")
    return Workspace(folder)


def _write_report(path: Path) -> None:
    page = Canvas(str(path), invariant=True)
    page.drawString(72, 720, "A colony of 40,000 bees consumes about 15 kilograms of honey in winter.")
    page.save()


def _write_labelled_set(folder: Path) -> None:
    write_notes(folder / "documents")
    (folder / "queries.jsonl").write_text(
        '{"id": "q1", "text": "When does a swarm leave?"}\n', encoding="utf-8"
    )
    (folder / "qrels.tsv").write_text("q1\tswarm.md\t1\n", encoding="utf-8")


def _write_truth(folder: Path) -> None:
    write_notes(folder / "documents")
    (folder / "truth").mkdir()
    (folder / "truth" / "varroa.md").write_text("# Varroa\n\nTreat with oxalic acid in late December.\n")


@pytest.fixture
def place(made: Workspace, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with `demo` as the default home."""
    folder = made.restore()
    monkeypatch.chdir(folder)
    for name in set(os.environ) - set(clean_environment()):
        monkeypatch.delenv(name)
    monkeypatch.setenv("INGEST_HOME", str(folder / "demo"))
    return folder


def _with_blocks(language: str) -> list[Page]:
    return [page for page in _EXAMPLES if _to_run(page, language)]


def _to_run(page: Page, language: str) -> list[Block]:
    return [block for block in page.blocks(language) if not block.why_not_run]


@contextlib.contextmanager
def _quietly() -> Iterator[io.StringIO]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        yield said


@pytest.mark.parametrize("page", _with_blocks("sh"), ids=lambda page: page.name)
def test_every_command_runs(page: Page, place: Path):
    """One page's commands in order, as a reader would type them; documents may fail, commands not."""
    for block in _to_run(page, "sh"):
        for words in block.commands():
            if words[0] != "ingest" or words == _SERVER:
                continue
            arguments = [word.replace("~", str(place)) for word in words[1:]]
            with _quietly() as said:
                code = run(arguments)
            wrong = [line for line in said.getvalue().splitlines() if line.startswith("ingest: ")]
            assert (code in (0, 1), wrong) == (True, []), f"{' '.join(words)}\nexit {code}\n{said.getvalue()}"


@pytest.mark.parametrize("page", _with_blocks("python"), ids=lambda page: page.name)
def test_every_python_snippet_runs(page: Page, place: Path):
    """Each snippet separately."""
    for block in _to_run(page, "python"):
        with _quietly():
            exec(compile(block.text, page.name, "exec"), {"__name__": "__main__"})

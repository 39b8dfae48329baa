"""Links, paths, names and commands in README and guides must exist."""

import json
import re
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from ingest_assets.settings.execution import StageOptions
from ingest_assets.settings.read import read_settings
from ingest_assets.settings.tree import Settings
from ingest_tests.architecture.test_project import PROJECT
from ingest_tests.docs.pages import PAGES, Page, fault_of
from ingest_tests.docs.reference import FOLDER
from ingest_tests.docs.reference import PAGES as GENERATED

_KILOBYTES = {
    "README.md": 9,
    "settings.md": 24,
    "cli.md": 20,
    "tables.md": 10,
    "errors.md": 12,
    "adding-a-stage.md": 14,
}
_GUIDE_KILOBYTES = 10
_ALL_KILOBYTES = 120

_UNUSUAL = re.compile(
    r"(?i)\b(?:nobody|whoever|anew|mend(?:s|ed|ing)?|in vain|dear|fell silent|tried again|riddles?)\b"
)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@each_page
def test_every_link_leads_somewhere(page: Page):
    """Including the part after `#`, the anchor of a heading."""
    wrong = []
    for link in page.links():
        path, _, anchor = link.partition("#")
        target = (page.path.parent / path).resolve() if path else page.path
        if link.startswith(("http://", "https://")):
            continue
        if not target.exists() or (anchor and anchor not in Page(target).anchors()):
            wrong.append(link)

    assert wrong == []


@each_page
def test_every_path_of_the_project_exists(page: Page):
    """Except for files that a guide tells the reader to add."""
    added = set(re.findall(r"(?m)^`(ingest_[\w/.]+)`\n\n```python$", page.text))
    paths = set(page.named(r"ingest_(assets|tests)/[\w/.-]+"))

    assert [path for path in sorted(paths - added) if not (PROJECT / path).exists()] == []


@each_page
def test_every_command_and_flag_exists(page: Page):
    """In all blocks, including those that are not run, and in the text."""
    commands = [words for block in page.blocks("sh") for words in block.commands()]
    commands += [code.split() for code in page.named(r"(ingest|make) [a-z-].*")]

    assert [fault for words in commands if (fault := fault_of(words))] == []


def _settings(model: type[BaseModel] = Settings, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Return every section and key."""
    for name, field in model.model_fields.items():
        yield ".".join((*path, name))
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _settings(field.annotation, (*path, name))


@each_page
def test_every_setting_exists(page: Page):
    """Inline code like `chunks.max_tokens` that starts with the name of a section."""
    known = set(_settings()) | {f"stages.outlines.{key}" for key in (*StageOptions.model_fields, "execution")}
    sections = "|".join(Settings.model_fields)
    named = {code.replace("<name>", "doctags") for code in page.named(rf"({sections})(\.[\w<>]+)+")}

    assert sorted(name for name in named - known if not name.startswith("outlines.")) == []


@each_page
def test_every_block_of_settings_is_accepted(page: Page, tmp_path):
    """Each block separately, as the file of a home."""
    for number, block in enumerate(page.blocks("toml")):
        home = tmp_path / str(number)
        home.mkdir()
        (home / "ingest.toml").write_text(block.text, encoding="utf-8")
        read_settings(home)


@each_page
def test_every_block_of_json_is_valid(page: Page):
    """One object, or one per line."""
    for block in page.blocks("json"):
        json.loads(block.text)
    for block in page.blocks("jsonl"):
        [json.loads(line) for line in block.text.splitlines()]


@each_page
def test_a_block_that_is_not_run_says_why(page: Page):
    """And names an existing test if another test runs the same."""
    reasons = [block.why_not_run for block in page.blocks("sh", "python") if block.why_not_run]
    named = re.findall(r"ingest_tests/[\w/]+\.py", " ".join(reasons))

    assert [path for path in named if not (PROJECT / path).is_file()] == []
    assert all(len(reason.split()) > 1 for reason in reasons)


@each_page
def test_every_block_has_a_language(page: Page):
    """A block of an unknown language would not be checked."""
    languages = re.findall(r"(?m)^```(\w*)\n(?:.*?)^```$", page.text, flags=re.DOTALL)

    assert set(languages) <= {"sh", "python", "toml", "json", "jsonl", "sql", "text", "diff", "mermaid"}


def test_pages_are_short():
    """The pages together have a size limit."""
    sizes = {page.name: len(page.text.encode()) for page in PAGES}
    limits = {name: _KILOBYTES.get(name, _GUIDE_KILOBYTES) * 1000 for name in sizes}

    assert {name: size for name, size in sizes.items() if size > limits[name]} == {}
    assert sum(sizes.values()) - sizes["README.md"] <= _ALL_KILOBYTES * 1000


def test_code_and_pages_use_the_usual_terms():
    """Retry, rebuild, fix, expensive: not the words that earlier versions used for them."""
    texts = [page.path for page in PAGES] + [PROJECT / "CHANGELOG.md", PROJECT / "Makefile"]
    texts += (PROJECT / "ingest_assets").rglob("*.py")

    assert {str(path): found for path in texts if (found := _UNUSUAL.findall(path.read_text("utf-8")))} == {}


def test_every_guide_is_linked_from_another_page():
    """Otherwise it would not be found."""
    linked = {link.partition("#")[0].rpartition("/")[2] for page in PAGES for link in page.links()}

    assert {page.name for page in PAGES} - linked - {"README.md"} == set()
    assert set(GENERATED) <= {path.name for path in FOLDER.glob("*.md")}


def test_ci_uses_make():
    """CI must run the commands that the pages show."""
    script = (PROJECT / ".ci" / "run").read_text(encoding="utf-8")
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?m)^(lint|test[a-z-]*):", makefile))

    assert "make " in script
    assert targets <= set(re.findall(r"[a-z-]+", script))
    assert targets <= set(re.findall(r"make ([a-z-]+)", "".join(page.text for page in PAGES)))

"""Generated pages are up to date, and the page of error codes is complete."""

import ast
import re
from pathlib import Path

import pytest

from ingest_tests.architecture.test_project import PROJECT
from ingest_tests.docs.reference import FOLDER, PAGES

_CODE = re.compile(r"\b[EW]_[A-Z_]+[A-Z]\b")


@pytest.mark.parametrize("page", PAGES)
def test_a_generated_page_is_up_to_date(page: str):
    """A renamed flag or setting must not leave its old name in the reference."""
    path = FOLDER / page

    assert path.is_file(), f"{page} is missing: run make docs"
    assert path.read_text(encoding="utf-8") == PAGES[page](), f"{page} is out of date: run make docs"


def _codes_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return {code for text in texts for code in _CODE.findall(text)}


def test_every_code_has_a_row_in_the_page_of_codes():
    """Users search for codes when something fails."""
    used = set().union(*(_codes_in(path) for path in (PROJECT / "ingest_assets").rglob("*.py")))
    listed = re.findall(r"(?m)^\| `([EW]_[A-Z_]+)` \|", (FOLDER / "errors.md").read_text(encoding="utf-8"))

    assert sorted(used - set(listed)) == [], "codes without a row in errors.md"
    assert sorted(set(listed) - used) == [], "rows of errors.md without a code"
    assert len(listed) == len(set(listed))

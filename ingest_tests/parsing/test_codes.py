"""Codes are a contract: what the product raises and warns of is what the README lists."""

import re
from pathlib import Path

import ingest_assets
from ingest_assets.parsing import errors

PROJECT = Path(ingest_assets.__file__).parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
SOURCES = "".join(
    path.read_text(encoding="utf-8") for path in sorted((PROJECT / "ingest_assets").rglob("*.py"))
)


def test_every_code_of_a_refusal_is_explained() -> None:
    """People look for a code before they look for a word."""
    codes = {kind.code for kind in errors.ParseError.__subclasses__()}

    assert {code for code in codes if f"`{code}`" not in README} == set()


def test_every_code_that_is_explained_exists() -> None:
    """And so does every warning, in both places."""
    section = README.split("## What is refused")[1].split("\n## ")[0]

    assert {code for code in re.findall(r"\bE_[A-Z_]+", section) if f'"{code}"' not in SOURCES} == set()
    assert set(re.findall(r"W_[A-Z_]+", section)) == set(re.findall(r"\bW_[A-Z_]+", SOURCES))


def test_the_issue_has_its_codes() -> None:
    """Those that were asked for."""
    asked = {
        *(
            f"E_SECURITY_{name}"
            for name in ("INVALID_PDF", "DECOMPRESSION_BOMB", "TOO_LARGE", "TOO_MANY_PAGES")
        ),
        *(f"E_PARSE_{name}" for name in ("CORRUPT", "PASSWORD", "EMPTY", "GARBLED", "UNSUPPORTED")),
        *(f"E_OCR_{name}" for name in ("ENGINE_UNAVAILABLE", "TIMEOUT", "FAILED")),
    }

    assert {kind.code for kind in errors.ParseError.__subclasses__()} == asked

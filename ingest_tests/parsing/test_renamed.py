"""A document under another name is what reading it under that name gives, to the byte."""

from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath

import pytest

from ingest_assets.parsing.reader import DocumentReader, renamed
from ingest_assets.samples import samples_folder
from ingest_tests.parsing.conftest import Read

SAMPLES = [
    "association-rules.docx",
    "capping-and-moisture-trial.pdf",
    "first-inspection-course.pptx",
    "hive-records-2024.xlsx",
    "pollen-calendar.html",
    "wabenhygiene-prüfliste.md",
]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_renamed_document_is_the_one_that_is_read_under_that_name(read: Read, sample: str) -> None:
    """Nothing else in it depends on the name, in any format."""
    path, name = samples_folder() / sample, f"Ünterlagen 2.0.{PurePosixPath(sample).suffix[1:].upper()}"
    before, expected = read(sample, path), read(name, path)

    found = replace(before, document=renamed(before.document, name))

    assert before.document != expected.document
    assert asdict(found) == asdict(expected)


TINY = {
    "a.csv": "hive,kg\nA1,31\n",
    "a.adoc": "= Hives\n\nText.\n",
    "a.vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n",
    "a.tex": "\\documentclass{article}\\begin{document}\\section{One}Text\\end{document}",
    "a.eml": "From: a@b.org\nSubject: Hives\nMIME-Version: 1.0\nContent-Type: text/plain\n\nText\n",
    "a.txt": "Plain text.\n",
}


@pytest.mark.parametrize("name", TINY)
def test_neither_does_anything_in_the_smaller_formats(read: Read, name: str) -> None:
    """Each has a reader of its own."""
    before, expected = (read(each, TINY[name].encode()) for each in (name, f"another {name}"))

    assert asdict(replace(before, document=renamed(before.document, f"another {name}"))) == asdict(expected)


@pytest.mark.parametrize("name", ["notes.md", "notes", ".notes", "a.b.c", "folder/notes.md", "é 🐝.md"])
def test_every_kind_of_name_is_taken_as_the_reader_takes_it(
    reader: DocumentReader, tmp_path: Path, name: str
) -> None:
    """With two suffixes, with none, with nothing but one."""
    path = tmp_path / "bytes"
    path.write_text("# Hives\n\nOf 1e3, 0.1 and -0.0.\n\n| a | b |\n|---|---|\n| 1 | é |\n", encoding="utf-8")
    before, expected = (reader.read(path, each, "text/markdown") for each in ("first.md", name))

    assert renamed(before.document, name) == expected.document

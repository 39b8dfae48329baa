"""`ingest eval parse`: what it prints, writes and rejects."""

import json
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from ingest_assets.cli.signals import INTERRUPTED
from ingest_tests.conftest import Command, clean_environment, write_notes
from ingest_tests.parsing.documents import pdf

VARROA = "# Varroa\n\nTreat with oxalic acid in late November.\n"  # one word is not what the page says


@pytest.fixture
def compared(tmp_path: Path) -> tuple[object, ...]:
    """The arguments that compare the three notes: two are Markdown, the page has a separate truth."""
    write_notes(tmp_path / "documents")
    (tmp_path / "truth").mkdir()
    (tmp_path / "truth" / "varroa.html.md").write_text(VARROA)
    return ("eval", "parse", "--documents", tmp_path / "documents", "--truth", tmp_path / "truth")


def _line(done) -> str:
    """The one line on standard error."""
    (line,) = done.stderr.strip().splitlines()
    return line


def test_every_document_and_the_total_are_printed(ingest: Command, compared: tuple[object, ...]):
    """One line each, with its figures."""
    lines = ingest(*compared).stdout.splitlines()

    (varroa,) = [line.split() for line in lines if line.endswith("varroa.html")]
    assert varroa[:4] == ["0.889", "1.000", "1.000", "1.000"]
    assert sum(line.endswith(("swarm.md", "feeding.md")) and " 1.000 " in line for line in lines) == 2
    assert lines[-1].endswith("all: 3 read, 0 failed, 3 compared")


def test_the_report_is_written_and_printed_as_json(ingest: Command, compared: tuple[object, ...]):
    """The same in both places."""
    output = ingest.home / "report.json"

    printed = ingest.json(*compared, "--output", output)

    assert json.loads(output.read_text()) == printed
    assert [one["document"] for one in printed["documents"]] == ["feeding.md", "swarm.md", "varroa.html"]
    assert printed["documents"][2]["scores"]["word_ratio"] == 0.8889
    assert set(printed["by_kind"]) == {"html", "md"}
    assert printed["total"]["heading_f1"] == 1.0
    assert printed["engine"] == "embedded"


def test_the_settings_of_the_home_are_used_and_the_home_is_not_changed(
    ingest: Command, compared: tuple[object, ...]
):
    """Measuring changes nothing."""
    printed = ingest.json(*compared, INGEST_PARSING__MAX_PAGES="7")

    assert printed["parsing"]["max_pages"] == 7
    assert list(ingest.home.iterdir()) == []


def test_a_document_that_cannot_be_read_is_a_line_with_its_code(
    ingest: Command, compared: tuple[object, ...], tmp_path: Path
):
    """And the exit code says that something failed; the others are compared."""
    (tmp_path / "documents" / "locked.pdf").write_bytes(pdf([[(72, 700, 12, "x")]], password="honey"))
    (tmp_path / "documents" / "old.doc").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old")

    lines = ingest(*compared, check=1).stdout.splitlines()

    assert any("E_PARSE_PASSWORD  locked.pdf: The PDF is encrypted" in line for line in lines)
    assert any("E_PARSE_UNSUPPORTED  old.doc" in line for line in lines)
    assert lines[-1].endswith("all: 3 read, 2 failed, 3 compared")


def test_a_document_without_a_truth_is_read_and_not_compared(
    ingest: Command, compared: tuple[object, ...], tmp_path: Path
):
    """The number of characters read is printed anyway."""
    (tmp_path / "documents" / "extra.html").write_text("<html><body><p>Smoke calms them.</p></body></html>")

    done = ingest(*compared)

    assert "extra.html (no truth; 15 characters read)" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("all: 4 read, 0 failed, 3 compared")


def test_a_missing_folder_is_named(ingest: Command, notes: Path, tmp_path: Path):
    """Either of the two."""
    nowhere = tmp_path / "nowhere"
    for documents, truth in ((nowhere, notes), (notes, nowhere)):
        done = ingest("eval", "parse", "--documents", documents, "--truth", truth, check=2)

        assert _line(done) == f"ingest: {nowhere}: does not exist; give a folder with documents."


def test_an_empty_folder_is_named(ingest: Command, notes: Path, tmp_path: Path):
    """There is nothing to read."""
    (tmp_path / "empty").mkdir()

    done = ingest("eval", "parse", "--documents", tmp_path / "empty", "--truth", notes, check=2)

    assert _line(done) == f"ingest: {tmp_path / 'empty'} has no documents. Set a folder with documents."


def test_a_truth_that_matches_nothing_is_named(ingest: Command, tmp_path: Path):
    """The message has the name that was expected."""
    for name in ("documents", "truth"):
        (tmp_path / name).mkdir()
    (tmp_path / "documents" / "page.html").write_text("<html><body><p>x</p></body></html>")
    folders = ("--documents", tmp_path / "documents", "--truth", tmp_path / "truth")

    done = ingest("eval", "parse", *folders, check=2)

    assert "has no truth for any of the 1 documents" in _line(done)
    assert _line(done).endswith("The truth of page.html is named page.html.md.")


def test_an_output_that_cannot_be_written_is_refused_first(ingest: Command, compared: tuple[object, ...]):
    """Not after minutes of reading."""
    done = ingest(*compared, "--output", ingest.home / "no" / "report.json", check=2)

    assert "its folder does not exist" in _line(done)
    assert done.stdout == ""


def test_the_group_explains_itself(ingest: Command):
    """Like the other groups."""
    done = ingest.apart("eval", "parse", "--help")

    assert "--documents" in done.stdout


@pytest.mark.chaos
def test_ctrl_c_ends_it_and_leaves_no_process_behind(
    ingest: Command, compared: tuple[object, ...], tmp_path: Path
):
    """The reader runs in this process, with all its threads."""
    for at in range(300):
        (tmp_path / "documents" / f"{at}.md").write_text(f"# {at}\n\ntext\n" * 200)
    process = subprocess.Popen(
        ingest.line(*compared), env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    while b"0.md" not in process.stdout.readline():
        assert process.poll() is None
    below = psutil.Process(process.pid).children(recursive=True)

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    assert process.returncode == INTERRUPTED
    assert not [child for child in below if child.is_running()]

"""Bad input gets one clear line and the right exit code, and nothing is lost."""

import os
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

import polars as pl
import pytest

from ingest_assets.app.graph import stages_between
from ingest_assets.app.home import open_home
from ingest_tests.conftest import Command, clean_environment
from ingest_tests.packages import offer_providers
from ingest_tests.runs import run_batches


def _line(done) -> str:
    """The one line on standard error."""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def test_a_folder_that_does_not_exist_is_named(ingest: Command, tmp_path: Path):
    """The message names the folder and says what to do."""
    done = ingest("all", "--input", tmp_path / "nowhere", check=2)

    assert _line(done) == f"ingest: {tmp_path / 'nowhere'}: does not exist; give a folder with documents."


def test_a_file_given_as_folder_is_named(ingest: Command, notes: Path):
    """A frequent mistake."""
    done = ingest("all", "--input", notes / "swarm.md", check=2)

    assert "is a file, not a folder" in _line(done)


def test_a_folder_given_without_its_flag_names_the_flag(ingest: Command, notes: Path):
    """Another frequent mistake."""
    done = ingest("all", notes, check=2)

    assert f"`ingest all --input {notes}`" in _line(done)


def test_doctor_does_not_create_a_mistyped_home(tmp_path: Path):
    """The next command would find an empty home there."""
    done = Command(tmp_path / "typo")("doctor", check=1)

    assert "there is no home folder here" in done.stdout
    assert not (tmp_path / "typo").exists()


def test_a_run_without_a_folder_creates_no_home(tmp_path: Path):
    """The path may be mistyped."""
    done = Command(tmp_path / "typo")("all", check=2)

    assert "watches no folder and its queue is empty" in _line(done)
    assert not (tmp_path / "typo").exists()


def test_help_names_every_flag_on_a_narrow_terminal(ingest: Command):
    """Frames and columns would cut long names."""
    assert "--enable-experimental" in ingest("all", "--help", COLUMNS="80").stdout


# The command, imported as the user of the tests and run as a user whom permission bits restrict.
AS_NOBODY = """
import os, sys
import sqlalchemy, ingest_assets.cli.run
from ingest_assets.cli.main import run
sqlalchemy.create_engine("sqlite://").connect().close()  # does a lazy import
home, folder = sys.argv[1:]
run(["status", "--home", os.path.dirname(home)])  # and the lazy imports of the command
sys.stdout.flush(); sys.stderr.write("-----\\n")
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(run(["all", "--home", home, "--input", folder]))
"""


def test_an_unreadable_folder_is_named():
    """The command runs as an unprivileged user, because root ignores permissions."""
    with tempfile.TemporaryDirectory() as root:
        home, closed = Path(root) / "home", Path(root) / "closed"
        for folder in (home, closed):
            folder.mkdir()
            folder.chmod(0o777)
        Path(root).chmod(0o755)
        closed.chmod(0)

        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(home), str(closed)],
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        left = sorted(path.name for path in (home / "data").rglob("*")) if (home / "data").exists() else []

    assert done.returncode == 2, done.stderr
    line = done.stderr.split("-----\n")[-1].strip()
    assert line == f"ingest: {closed}: cannot be read (Permission denied); check its permissions."
    assert left == []


def test_an_unknown_key_in_the_settings_is_refused(ingest: Command, notes: Path):
    """A typo in a settings file must not be ignored."""
    (ingest.home / "ingest.toml").write_text("[chunks]\nmax_token = 128\n")

    done = ingest("all", "--input", notes, check=2)

    file = ingest.home / "ingest.toml"
    assert _line(done) == f"ingest: {file}: chunks.max_token: no such setting; did you mean 'max_tokens'?"
    assert not (ingest.home / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("all", "--workers", "-1"), ("--workers", "-1")),
        (("all", "--retries", "many"), ("--retries", "many")),
        (("all", "--until", "vectors"), ("--until", "vectors")),
        (("all", "--form", "chunks"), ("--form",)),
        (("al",), ("al",)),
        (("all", "--from", "embeddings", "--until", "doctags"), ("--from embeddings", "--until doctags")),
        (("up", "--port", "0"), ("--port", "0")),
        (("inspect", "nothing.md"), ("nothing.md", "ingest status --documents")),
    ],
)
def test_wrong_usage_is_one_line_and_code_two(
    ingest: Command, arguments: tuple[str, ...], words: tuple[str, ...]
):
    """The line names the flag and the problem."""
    line = _line(ingest(*arguments, check=2))

    assert line.startswith("ingest: ")
    assert all(word in line for word in words)


def test_settings_that_windows_has_saved_are_read(ingest: Command):
    """Windows editors put a byte order mark before the first line."""
    (ingest.home / "ingest.toml").write_text("[chunks]\nmax_token = 128\n", encoding="utf-8-sig")

    assert "chunks.max_token: no such setting" in _line(ingest("status", check=2))


def test_a_negative_worker_count_in_the_settings_is_refused(ingest: Command, notes: Path):
    """The same rule applies to the flag and the setting."""
    done = ingest("all", "--input", notes, check=2, INGEST_STAGES__DOCTAGS__WORKERS="-2")

    assert (
        _line(done)
        == "ingest: INGEST_STAGES__DOCTAGS__WORKERS: should be greater than or equal to 0; got '-2'."
    )


def test_chunks_larger_than_the_model_reads_are_refused_with_both_numbers(ingest: Command, notes: Path):
    """Text past the model's limit would silently be lost."""
    line = _line(ingest("all", "--input", notes, check=2, INGEST_CHUNKS__MAX_TOKENS="512"))

    assert "512" in line
    assert "256" in line


def test_no_source_at_all_is_explained(ingest: Command):
    """New users see this message first."""
    assert "--input" in _line(ingest("all", check=2))


def test_a_zero_byte_file_fails_alone(ingest: Command, notes: Path):
    """A bad document does not affect the others."""
    (notes / "empty.md").touch()

    result = ingest.json("all", "--input", notes, check=1)

    assert [(f["doc_id"], f["code"]) for f in result["failures"]] == [("notes:empty.md", "E_PARSE_EMPTY")]
    assert result["converted"] == 3


@pytest.mark.graph
def test_names_in_any_unicode_form_are_kept_or_reported(ingest: Command, tmp_path: Path):
    """Composed and decomposed names are ids in NFC; twins and undecodable names are reported, not lost."""
    folder = tmp_path / "notes"
    folder.mkdir()
    text = "# Notiz\n\nDie Bienen fliegen heute Abend aus allen Stöcken ins Tal, {}.\n"
    composed, decomposed = (unicodedata.normalize(form, "prüfung.md") for form in ("NFC", "NFD"))
    for name in (decomposed, "emoji 🐝 and, comma.md", composed):
        (folder / name).write_text(text.format(name), encoding="utf-8")
    (folder / os.fsdecode(b"latin-\xff.md")).write_text(text)

    result = ingest.json("all", "--input", folder, check=1)

    ids = set(pl.read_parquet(ingest.home / "data/chunks/*.parquet")["doc_id"])
    assert ids == {"notes:prüfung.md", "notes:emoji 🐝 and, comma.md"}
    reasons = {problem["path"]: problem["reason"] for problem in result["problems"]}
    assert len(reasons) == 2
    assert "not valid UTF-8" in reasons["latin-\\xff.md"]
    assert any("another Unicode form" in reason for reason in reasons.values())


@pytest.mark.graph
def test_a_file_that_vanishes_after_the_scan_fails_alone_and_is_gone_with_the_next(
    ingest: Command, notes: Path
):
    """Files can disappear between the scan and the read."""
    home = open_home(ingest.home)
    home.watch(notes)
    home.scan()
    (notes / "swarm.md").unlink()

    report = run_batches(home, stages_between("documents", "doctags"), {}, reason="test")

    assert (report.stages["documents"].failed, report.stages["doctags"].succeeded) == (1, 2)
    (failure,) = home.tables("documents").failures.values()
    assert failure.error.code == "E_DOCUMENT_MISSING"
    assert failure.error.retryable
    result = ingest.json("doctags")
    assert (result["scan"]["deleted"], result["failures"], result["documents"]) == (1, [], 2)


@pytest.mark.graph
def test_a_damaged_table_is_rebuilt(ingest: Command, notes: Path):
    """Tables are derived: damage costs time, never data."""
    ingest("chunk", "--input", notes)
    before = ingest.hashes()
    (table,) = (ingest.home / "data/chunks").glob("*.parquet")
    table.write_bytes(table.read_bytes()[:100])

    ingest("chunk")

    assert ingest.hashes() == before


def test_a_provider_that_cannot_describe_itself_is_one_line(
    ingest: Command, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A bug in the user's own package is reported like an invalid setting."""
    source = (
        "class Kind:\n    def describe(self, options):\n        raise ValueError('no\\nmodel')\n"
        "    def open(self, options): ...\n"
    )
    monkeypatch.syspath_prepend(str(offer_providers(tmp_path / "site", "mine", source, {"mine": "Kind"})))

    done = ingest("all", "--input", notes, check=2, INGEST_EMBEDDINGS__DENSE__PROVIDER="mine")

    assert _line(done) == (
        "ingest: embeddings.dense.provider: 'mine' of package mine (mine:Kind): describe() failed "
        "(ValueError: no model). Fix the package."
    )

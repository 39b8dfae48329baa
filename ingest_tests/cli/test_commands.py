"""The output and exit code of each command."""

import json
from pathlib import Path

import pytest

from ingest_assets.app.inspect import ids_ending_in
from ingest_tests.conftest import Command


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Command:
    """A home in which three notes are ingested and one broken document failed."""
    from ingest_tests.conftest import write_notes

    folder = write_notes(tmp_path_factory.mktemp("in") / "notes")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\ncut off")
    command = Command(tmp_path_factory.mktemp("home"))
    command("all", "--input", folder, check=1)
    return command


COMMANDS = [
    "all",
    "doctags",
    "chunk",
    "embed",
    "plan",
    "status",
    "inspect",
    "validate",
    "doctor",
    "up",
    "demo",
]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_and_takes_home_and_json(name: str, capsys):
    """`--help` of each command."""
    from ingest_assets.cli.main import run

    assert run([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "--home" in text
    assert "--json" in text


def test_the_json_object_says_the_same_as_the_text(done: Command):
    """Text and JSON must agree."""
    result = done.json("all", check=1)
    text = done("all", check=1)

    assert result["exit_code"] == 1
    assert (
        f"{result['documents']} documents, {result['converted']} converted ({result['pages']} pages), "
        f"{result['admitted']} admitted, {result['rejected']} rejected, {result['chunks']} chunks, "
        f"{result['vectors']} vectors, "
        f"{len(result['failures'])} failed" in text.stdout
    )
    assert (
        f"failed: notes:broken.pdf [doctags E_PARSE_CORRUPT] {result['failures'][0]['message']}"
        in text.stderr
    )


def test_status_shows_each_documents_checkpoint(done: Command):
    """Stage, times, attempts and the last error."""
    result = done.json("status", "--documents")

    by_id = {line["doc_id"]: line for line in result["checkpoints"]}
    good, bad = by_id["notes:swarm.md"], by_id["notes:broken.pdf"]
    assert set(good["finished"]) == {"documents", "doctags", "admission", "chunks", "dense", "lexical"}
    assert (good["stage"], good["error"]) == ("lexical", None)
    assert bad["stage"] == "documents"
    assert bad["attempts"] == {"documents": 1, "doctags": 1}
    assert bad["error"].startswith("E_PARSE_CORRUPT: ")
    assert all(batch["complete"] for batch in result["batches"])


def test_inspect_finds_a_document_by_the_end_of_its_id(done: Command):
    """Whole ids are too long to type."""
    result = done.json("inspect", "swarm.md")

    assert result["doc_id"] == "notes:swarm.md"
    assert result["rows"] == dict.fromkeys(
        ("documents", "doctags", "admission", "chunks", "dense", "lexical"), 1
    )
    assert "nine of ten frames" in result["chunks"][0]["text"]
    assert "E_PARSE_CORRUPT" in done("inspect", "broken.pdf").stdout


def test_inspect_finds_a_document_by_its_path(done: Command):
    """The path is what a reader of a failure has at hand."""
    path = done.json("inspect", "swarm.md")["documents"]["path"]

    assert done.json("inspect", path)["doc_id"] == "notes:swarm.md"


def test_a_complete_file_name_goes_before_an_ending():
    """`report.pdf` is neither `broken-report.pdf` nor the file of that name in a subfolder."""
    ids = ["a:broken-report.pdf", "a:sub/report.pdf", "a:report.pdf", "a:other/letter.pdf"]

    assert ids_ending_in(ids, "report.pdf") == ["a:report.pdf"]
    assert ids_ending_in(ids, "letter.pdf") == ["a:other/letter.pdf"]
    assert ids_ending_in(ids[:2], "report.pdf") == ["a:sub/report.pdf"]
    assert ids_ending_in(ids, "-report.pdf") == ["a:broken-report.pdf"]
    assert len(ids_ending_in(ids, ".pdf")) == 4


def test_plan_shows_what_would_run_and_changes_nothing(done: Command, tmp_path: Path):
    """Reading must not change the home."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "new.md").write_text("# New\n\nA new note.\n")
    before = {p: p.stat().st_mtime_ns for p in done.home.rglob("*") if p.is_file() and "ledger" not in p.name}

    fresh = done.json("plan", "--input", folder)
    changed = json.loads(done("plan", "--json", INGEST_CHUNKS__MAX_TOKENS="64").stdout)

    assert fresh["scan"]["new"] == 1
    runs = {state["stage"]: state["run"] for state in changed["stages"]}
    assert runs == {"documents": 0, "doctags": 0, "admission": 0, "chunks": 3, "dense": 3, "lexical": 3}
    after = {p: p.stat().st_mtime_ns for p in done.home.rglob("*") if p.is_file() and "ledger" not in p.name}
    assert after == before
    assert "more" not in {source["name"] for source in done.json("status")["sources"]}


def test_a_first_run_can_be_previewed_before_there_is_a_home(tmp_path: Path, notes: Path):
    """Before a first run, a careful user plans it."""
    command = Command(tmp_path / "not-yet")

    result = command.json("all", "--input", notes, "--dry-run")

    assert result["scan"]["new"] == 3
    assert not command.home.exists()


def test_until_and_from_choose_the_stages(ingest: Command, notes: Path):
    """A user can read the doctags before chunking."""
    first = ingest.json("all", "--input", notes, "--until", "doctags")
    then = ingest.json("all", "--from", "admission", "--until", "chunks")

    assert list(first["stages"]) == ["documents", "doctags"]
    assert then["stages"]["chunks"]["succeeded"] == 3
    assert then["vectors"] == 0


def test_from_a_stage_whose_input_is_missing_is_explained(ingest: Command, notes: Path):
    """Dagster's wrapper must not hide the reason."""
    done = ingest("chunk", "--input", notes, "--from", "chunks", check=1)

    assert " is not complete: admission has no table for batch " in done.stderr


def test_an_error_budget_stops_the_stage_and_keeps_what_is_done(ingest: Command, notes: Path):
    """Zero means: stop at the first failure."""
    (notes / "a-broken.pdf").write_bytes(b"%PDF-1.7\ncut off")

    stopped = ingest("doctags", "--input", notes, "--error-budget", 0, "--workers", 1, check=1)

    assert "doctags stopped after 1 of" in stopped.stderr
    assert ingest.json("doctags", check=1)["converted"] == 3


@pytest.mark.slow
def test_doctor_finds_a_missing_source(done: Command):
    """Before a run fails because of it."""
    found = done("doctor", check=1, INGEST_SOURCES__GONE__PATH="/nowhere/at/all")

    assert "ok    model" in found.stdout
    assert "ok    import docling.document_converter: works" in found.stdout
    assert [line for line in found.stdout.splitlines() if line.startswith("FAIL")] == [
        "FAIL  source gone: /nowhere/at/all: does not exist; give a folder with documents."
    ]

"""The engine from the command line: invalid choices are rejected first, and API keys are never stored."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ingest_tests.conftest import Command
from ingest_tests.parsing.docling_models import write_hollow_models
from ingest_tests.parsing.documents import pdf
from ingest_tests.parsing.vision_server import Reply, answering, refused, said

KEY = "sk-must-not-be-shown-anywhere"
INLINE = ("--run-on", "inline")  # in this process, where Docling is loaded already
SWARMS = said(
    "<doctag><title>Swarms</title><text>A swarm leaves the hive in the month of May.</text></doctag>"
)
PAGE = "<html><body><h1>Varroa</h1><p>Treat with oxalic acid in late December.</p></body></html>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A PDF and a web page."""
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "swarms.pdf").write_bytes(pdf([[(72, 760, 20, "Swarms")]]))
    (folder / "varroa.html").write_text(PAGE)
    return folder


def _ask(home: Path, url: str, prompt: str = "Read!") -> None:
    """Settings with which a vision model reads pages."""
    (home / "ingest.toml").write_text(
        f'[parsing]\npdf = "vlm"\n[parsing.vlm]\nurl = "{url}?token=q"\nmodel = "granite"\n'
        f'api_key_env = "VLM_KEY"\nprompt = "{prompt}"\n'
    )


def _files_with(home: Path, secret: str) -> list[str]:
    files = [path for path in home.rglob("*") if path.is_file()]
    assert len(files) > 5
    return [str(path) for path in files if secret.encode() in path.read_bytes()]


def test_docling_without_its_models_is_refused_before_any_document(ingest: Command, folder: Path):
    """One line, exit code 2, and nothing is created."""
    (ingest.home / "ingest.toml").write_text('[parsing]\npdf = "docling"\nartifacts_path = "models"\n')

    done = ingest("doctags", "--input", folder, check=2)

    (line,) = done.stderr.splitlines()
    assert line.startswith(f"ingest: parsing.pdf: Docling's models are not all in {ingest.home / 'models'}: ")
    assert "layout is missing, tableformer is missing. Download them with `ingest models pull`" in line
    assert not (ingest.home / "data").exists()


def test_an_engine_that_does_not_exist_is_refused(ingest: Command):
    """The message lists the valid engines."""
    done = ingest("status", check=2, INGEST_PARSING__PDF="heron")

    assert "INGEST_PARSING__PDF" in done.stderr
    assert "'auto'" in done.stderr
    assert "'vlm'" in done.stderr


def test_an_address_with_a_password_is_refused_without_showing_it(ingest: Command):
    """Settings are printed; a key belongs in the environment."""
    (ingest.home / "ingest.toml").write_text('[parsing.vlm]\nurl = "https://me:geheim@example.org/v1"\n')

    done = ingest("status", check=2)

    assert "parsing.vlm.url: should be an http:// or https:// URL without a user name" in done.stderr
    assert "geheim" not in done.stderr


@pytest.mark.slow
def test_status_and_doctor_name_the_engine(ingest: Command, folder: Path):
    """And why it was chosen."""
    environ = {"DOCLING_ARTIFACTS_PATH": str(write_hollow_models(folder.parent / "models"))}

    status = ingest("status", **environ).stdout
    doctor = {line["check"]: line for line in json.loads(ingest("doctor", "--json", **environ).stdout)}

    why = f"auto: Docling's models are in {folder.parent / 'models'}"
    assert f"PDFs and images are read by the docling engine ({why})." in status
    assert doctor["pdf engine"] == {"check": "pdf engine", "ok": True, "fact": f"docling ({why})"}


@pytest.mark.slow
def test_a_vision_model_reads_pages_and_its_key_is_nowhere(ingest: Command, folder: Path):
    """Not in a table, a manifest, a log, Dagster's storage or any output."""

    def in_turn(number: int, asked: object) -> Reply:
        return refused(429, Retry_After="0") if number == 0 else SWARMS

    with answering(in_turn) as server:
        _ask(ingest.home, server.url)
        ran = ingest.apart("doctags", "--input", folder, "--json", VLM_KEY=KEY)
        said_later = [
            ingest(*command, VLM_KEY=KEY, check=None)
            for command in (
                ("inspect", "swarms.pdf", "--json"),
                ("status", "--documents", "--json"),
                ("models", "list", "--json"),
            )
        ]

    row = json.loads(said_later[0].stdout)["doctags"]
    assert (row["parser"], row["title"], row["pages"]) == ("docling/pdf-vlm", "Swarms", 1)
    assert len(server.asked) == 2
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}
    assert _files_with(ingest.home, KEY) == []
    assert not any(KEY in done.stdout + done.stderr for done in (ran, *said_later))
    (table,) = (ingest.home / "data" / "doctags").glob("*.parquet")
    facts = pq.read_metadata(table).metadata
    assert (facts[b"ingest.pdf_engine"], facts[b"ingest.pdf_models"]) == (b"vlm", b"granite")


def test_another_prompt_reads_only_the_pages_again(ingest: Command, folder: Path):
    """The web page is not read again."""
    with answering(lambda number, asked: SWARMS) as server:
        _ask(ingest.home, server.url)
        ingest("doctags", "--input", folder, *INLINE, VLM_KEY=KEY)
        _ask(ingest.home, server.url, prompt="Read again!")
        planned = ingest.json("plan", VLM_KEY=KEY)
        again = ingest.json("doctags", *INLINE, VLM_KEY=KEY)

    stages = {line["stage"]: line for line in planned["stages"]}
    assert stages["doctags"]["run"] == 1
    assert (again["stages"]["doctags"]["succeeded"], again["stages"]["doctags"]["skipped"]) == (1, 1)
    assert [asked.body["messages"][0]["content"][1]["text"] for asked in server.asked] == [
        "Read!",
        "Read again!",
    ]


def test_a_wrong_key_fails_the_document_and_the_next_run_retries_it(ingest: Command, folder: Path):
    """With a code and a message; the web page is done, and the key is not stored."""
    with answering(lambda number, asked: refused(401) if number == 0 else SWARMS) as server:
        _ask(ingest.home, server.url)
        first = ingest.json("doctags", "--input", folder, *INLINE, VLM_KEY=KEY, check=1)
        left = _files_with(ingest.home, KEY)
        second = ingest.json("doctags", *INLINE, VLM_KEY=KEY)

    (failure,) = first["failures"]
    assert failure["code"] == "E_PARSE_VLM_DENIED"
    assert "rejected the API key (status 401)" in failure["message"]
    assert "token=q" not in failure["message"]
    assert left == []
    assert (first["converted"], second["converted"], second["failures"]) == (1, 2, [])


def test_a_key_that_is_not_set_is_refused_before_any_document(ingest: Command, folder: Path):
    """The message names the address, since there can be several."""
    _ask(ingest.home, "http://127.0.0.1:1/v1/chat/completions")

    done = ingest("doctags", "--input", folder, check=2)

    assert done.stderr == (
        "ingest: parsing.vlm.api_key_env: VLM_KEY is not set. Set it to the key of "
        "http://127.0.0.1:1/v1/chat/completions, or remove the setting if no key is required.\n"
    )

"""`ingest failures`: one list over all stages, with documents that really fail."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from ingest_assets.app.home import open_home
from ingest_assets.cli.main import run
from ingest_assets.intake.queue.artifacts import NewArtifact
from ingest_tests.cli.failing import PAGES, Failed, Web
from ingest_tests.conftest import write_notes
from ingest_tests.intake.fetch.site import Site
from ingest_tests.parsing.documents import pdf

pytestmark = pytest.mark.graph  # runs the whole graph many times

SETTINGS = "[parsing]\nmax_pages = 2\n[fetch]\nallow_private = true\npoliteness_delay_s = 0\n"
STAGES = ("documents", "doctags", "admission", "chunks", "dense", "lexical")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Failed]:
    """Notes that are done, a damaged and a locked PDF, one that a setting rejects, two pages not found."""
    root = tmp_path_factory.mktemp("failures")
    folder = write_notes(root / "notes")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\ncut off")
    (folder / "locked.pdf").write_bytes(pdf(PAGES, password="secret"))
    (folder / "long.pdf").write_bytes(pdf(PAGES))
    with Site().open() as site:
        home = root / "home"
        home.mkdir()
        command = Failed(home, Web(site))
        command.settings(SETTINGS)
        pages = [NewArtifact(id=name, url=url) for name, url in command.web.urls.items()]
        open_home(home).queue.enqueue(pages, time.time())
        command("all", "--input", folder, check=1)
        yield command


@pytest.fixture
def failed(made: Failed, tmp_path: Path) -> Iterator[Failed]:
    """A copy of that home that the test can change."""
    shutil.copytree(made.home, tmp_path / "home")
    yield Failed(tmp_path / "home", made.web)
    made.web.up.clear()


ALL_CODES = {
    "notes:broken.pdf": "E_PARSE_CORRUPT",
    "notes:locked.pdf": "E_PARSE_PASSWORD",
    "notes:long.pdf": "E_SECURITY_TOO_MANY_PAGES",
    "one.html": "E_FETCH_NOT_FOUND",
    "two.html": "E_FETCH_NOT_FOUND",
}


def test_every_failure_is_listed_once_with_its_file_and_attempts(made: Failed):
    """An abandoned page is in the queue and in a footer, but is one failure."""
    result = made.json("failures", "list")

    assert result["count"] == len(result["failures"]) == 5
    failures = {failure["doc_id"]: failure for failure in result["failures"]}
    assert {doc_id: failure["code"] for doc_id, failure in failures.items()} == ALL_CODES
    broken, page = failures["notes:broken.pdf"], failures["one.html"]
    assert (broken["stage"], broken["category"], broken["source"]) == ("doctags", "input", "notes")
    assert (page["stage"], page["category"], page["source"]) == ("documents", "input", "queue")
    assert broken["file"].endswith("/notes/broken.pdf")
    assert page["file"] == made.web.urls["one.html"]
    assert {failure["attempts"] for failure in failures.values()} == {1}
    times = [failure["failed_at"] for failure in result["failures"]]
    assert times == sorted(times, reverse=True)


def test_the_text_lists_the_same_failures_with_exit_code_zero(made: Failed):
    """One line each, so that grep finds them."""
    lines = made("failures", "list").stdout.splitlines()

    (line,) = [line for line in lines if "broken.pdf" in line]
    assert line.split()[:5] == ["notes:broken.pdf", "doctags", "E_PARSE_CORRUPT", "input", "1"]
    assert line.endswith("The PDF is damaged or truncated; get an intact copy.")
    assert lines[-1] == "5 failures of 5 documents. Details: ingest failures show DOC"


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (("--stage", "documents"), {"one.html", "two.html"}),
        (("--category", "config"), {"notes:long.pdf"}),
        (("--source", "notes", "--category", "input"), {"notes:broken.pdf", "notes:locked.pdf"}),
        (("--source", "queue"), {"one.html", "two.html"}),
        (("--stage", "chunks"), set()),
    ],
)
def test_filters_leave_what_they_name(made: Failed, filters: tuple[str, ...], names: set[str]):
    """All given filters must match."""
    assert set(made.codes(*filters)) == names


def test_a_batch_is_a_filter_too(made: Failed):
    """Files and pages have separate batches."""
    batches = {f["batch"]: f["source"] for f in made.json("failures", "list")["failures"]}

    for batch, source in batches.items():
        assert made.codes("--batch", batch) == made.codes("--source", source)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("list", "--stage", "doctag"), ("'doctag' is not one of 'documents', 'doctags'",)),
        (("list", "--category", "inputs"), ("'inputs' is not one of 'input', 'config'",)),
        (("list", "--batch", "2001-01-01-0001"), ("no batch '2001-01-01-0001'", "`ingest status`")),
        (("list", "--source", "note"), ("no source 'note'", "known here: notes, queue.")),
        (("show", "nothing.pdf"), ("No document 'nothing.pdf'",)),
        (("show", ".html"), ("2 failed documents end in '.html': one.html, two.html",)),
        (("show", ""), ("5 failed documents end in ''",)),
        (("retry",), ("Give documents, a filter such as --stage, or --all.",)),
        (("release",), ("Give documents, a filter such as --stage, or --all.",)),
        (("retry", "broken.pdf", "--all"), ("exclude each other",)),
        (("retry", "swarm.md"), ("notes:swarm.md has not failed",)),
        (("show", "BROKEN.pdf"), ("No document 'BROKEN.pdf'", "did you mean notes:broken.pdf?")),
        (("release", "broken.pdf", "nowhere.pdf"), ("No document 'nowhere.pdf'",)),
        (("list", "broken.pdf"), ("broken.pdf",)),
        (("lst",), ("lst",)),
    ],
)
def test_wrong_usage_is_one_line_and_code_two_and_changes_nothing(
    made: Failed, arguments: tuple[str, ...], words: tuple[str, ...]
):
    """The line names what was wrong and what would be right."""
    (line,) = made("failures", *arguments, check=2).stderr.strip().splitlines()

    assert line.startswith("ingest: ")
    assert all(word in line for word in words), line
    assert made.codes() == ALL_CODES


@pytest.mark.parametrize("name", ["list", "show", "retry", "release"])
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]):
    """`--help` of each command and of the group."""
    assert run(["failures", name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "--home" in text
    assert "--json" in text
    assert run(["failures"]) == 0
    assert name in capsys.readouterr().out


def test_show_tells_everything_about_a_document(made: Failed):
    """The error, every attempt, the file, and what to do next."""
    result = made.json("failures", "show", "locked.pdf")
    text = made("failures", "show", "locked.pdf").stdout

    assert result["doc_id"] == "notes:locked.pdf"
    assert Path(result["file"]).is_file()
    (failure,) = result["failures"]
    assert (failure["stage"], failure["code"]) == ("doctags", "E_PARSE_PASSWORD")
    first, second = result["attempts"]
    assert (first["stage"], first["status"], first["error"]) == ("documents", "done", None)
    assert (second["stage"], second["status"], second["attempt_no"]) == ("doctags", "failed", 1)
    assert second["error"]["code"] == "E_PARSE_PASSWORD"
    assert second["seconds"] > 0
    assert second["run_id"] in text
    assert result["file"] in text
    assert "Next: Replace the file and run `ingest all`." in text


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("locked.pdf", "(input, permanent)"),
        ("one.html", "(input, permanent)"),
        ("long.pdf", "(config, will be retried)"),
    ],
)
def test_permanent_failures_are_those_that_no_run_retries(made: Failed, document: str, says: str):
    """By the same predicate as runs, not by category: a setting can change at any time."""
    (failure,) = made.json("failures", "show", document)["failures"]
    text = made("failures", "show", document).stdout

    assert f"{failure['code']} {says} {failure['message']}" in text
    assert failure["lasting"] == ("permanent" in says)
    assert ("run retries it" in text.split("Next: ")[1]) or failure["lasting"]


def test_show_finds_a_page_that_the_queue_has_abandoned(made: Failed):
    """It never became a document, and is found anyway."""
    text = made("failures", "show", "two.html").stdout

    assert f"file: {made.web.urls['two.html']}" in text
    assert "queue: error, 1 attempt" in text
    assert "Next: The queue no longer retries it" in text
    assert "retry two.html` to retry it now." in text


def test_show_of_a_document_that_has_not_failed_gives_its_attempts(made: Failed):
    """After a fix, the user sees that the failure is gone."""
    result = made.json("failures", "show", "swarm.md")

    assert result["failures"] == []
    assert {attempt["status"] for attempt in result["attempts"]} == {"done"}


def test_retrying_one_document_does_not_retry_the_others(failed: Failed):
    """Not even those with temporary errors."""
    before, visits = failed.attempts(), len(failed.web.site.visits)

    result = failed.json("failures", "retry", "broken.pdf", check=1)

    (became,) = result["retried"]
    assert (became["doc_id"], became["became"], became["code"]) == (
        "notes:broken.pdf",
        "failed",
        "E_PARSE_CORRUPT",
    )
    assert failed.attempts() == before | {"notes:broken.pdf": 2}
    assert failed.codes() == ALL_CODES
    assert len(failed.web.site.visits) == visits


def test_a_fixed_setting_and_a_retry_take_a_document_through_all_stages(failed: Failed):
    """The limit is raised; other documents are not touched."""
    failed.settings(SETTINGS.replace("2", "3"))

    done = failed("failures", "retry", "--category", "config")

    assert done.stdout.splitlines()[0] == "done        notes:long.pdf"
    assert "1 document retried: 1 done; " in done.stdout
    rows = failed.json("inspect", "long.pdf")["rows"]
    assert all(rows[stage] >= 1 for stage in STAGES)
    assert set(failed.codes()) == set(ALL_CODES) - {"notes:long.pdf"}


def test_a_retry_fetches_only_the_selected_page(failed: Failed):
    """Only that artifact is queued again, with all its attempts available."""
    failed.web.up |= {"one.html", "two.html"}
    before = failed.web.site.count("/two.html")

    result = failed.json("failures", "retry", "one.html")

    assert [(r["doc_id"], r["became"]) for r in result["retried"]] == [("one.html", "done")]
    assert failed.web.site.count("/two.html") == before
    vectors = pl.read_parquet(failed.home / "data/embeddings/dense/*.parquet")
    assert "one.html" in set(vectors["doc_id"])
    assert set(failed.codes()) == set(ALL_CODES) - {"one.html"}


def test_a_page_that_is_still_gone_fails_again(failed: Failed):
    """The error is reported again."""
    text = failed("failures", "retry", "--source", "queue", check=1).stdout

    assert "failed      one.html  [documents E_FETCH_NOT_FOUND]" in text
    assert "2 documents retried: 2 failed again; " in text
    assert failed.codes() == ALL_CODES


def test_a_page_whose_server_is_busy_waits_for_the_queue(failed: Failed):
    """A temporary error is not final; the command reports that the page is not done yet."""
    page = failed.web.site.pages["/one.html"]
    failed.web.site.page("/one.html", lambda visit: visit.reply(503))
    try:
        (became,) = failed.json("failures", "retry", "one.html", check=1)["retried"]
    finally:
        failed.web.site.pages["/one.html"] = page

    assert became["became"] == "waiting"
    assert "the queue will retry it later" in became["message"]
    assert "one.html" not in failed.codes()


def test_a_released_failure_is_forgotten_everywhere_and_retried_by_the_next_run(failed: Failed):
    """Nothing runs now: tables lose the failure, the page is queued again."""
    failed.web.up |= {"one.html"}

    released = failed("failures", "release", "broken.pdf", "one.html").stdout
    left = failed.codes()
    in_status = {failure["doc_id"] for failure in failed.json("status")["failures"]}
    after = failed.json("all", check=1)

    assert "released: notes:broken.pdf [doctags E_PARSE_CORRUPT]" in released
    assert "2 failures released; " in released
    assert set(left) == in_status == {"notes:locked.pdf", "notes:long.pdf", "two.html"}
    assert {f["doc_id"] for f in after["failures"]} == set(ALL_CODES) - {"one.html"}
    assert failed.attempts()["notes:broken.pdf"] == 2
    assert failed.attempts()["notes:locked.pdf"] == 1


def test_filters_and_all_choose_what_is_released(failed: Failed):
    """The JSON object lists the released failures."""
    by_stage = failed.json("failures", "release", "--stage", "doctags", "--category", "input")
    rest = failed.json("failures", "release", "--all")

    assert {r["doc_id"] for r in by_stage["released"]} == {"notes:broken.pdf", "notes:locked.pdf"}
    assert {r["doc_id"] for r in rest["released"]} == {"notes:long.pdf", "one.html", "two.html"}
    assert failed.codes() == {}

"""`ingest queue`: adding, listing and retrying artifacts, without acquiring any."""

import time
from pathlib import Path
from typing import Any

import pytest

from ingest_assets.app.home import open_home
from ingest_assets.intake.queue.artifacts import Ending, Failure
from ingest_assets.intake.queue.metrics import QueueMetrics
from ingest_assets.intake.queue.quotas import Quotas
from ingest_assets.settings.intake import QuotaOptions
from ingest_tests.conftest import Command, Done
from ingest_tests.intake.queue.ends import ack

COMMANDS = ["enqueue", "import", "stats", "retry-failed", "refresh", "run"]


def _line(done: Done) -> str:
    """The one line on standard error."""
    (line,) = done.stderr.strip().splitlines()
    return line


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_and_takes_home_and_json(name: str, capsys):
    """`--help` of each command."""
    from ingest_assets.cli.main import run

    assert run(["queue", name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "--home" in text
    assert "--json" in text


def test_alone_it_lists_its_commands(capsys):
    """Like `ingest` itself."""
    from ingest_assets.cli.main import run

    assert run(["queue"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)


def test_an_artifact_is_new_once_and_known_afterwards(ingest: Command):
    """Later values do not change it."""
    given = ("queue", "enqueue", "a")

    first = ingest.json(*given, "--url", "https://a.org/1", "--meta", '{"k": [1]}')
    again = ingest.json(*given, "--url", "https://b.org/2")

    assert first == {"id": "a", "is_new": True, "state": "queued", "origin": "https://a.org/1"}
    assert again == {**first, "is_new": False}
    found = open_home(ingest.home).queue.get("a")
    assert found is not None
    assert found.meta == {"k": [1]}
    assert ingest(*given, "--url", "https://a.org/1").stdout.startswith("known: a is queued")
    assert ingest("queue", "enqueue", "b", "--url", "https://a.org/1").stdout.startswith("new: b is queued")


def test_a_relative_path_starts_at_the_current_folder(ingest: Command, tmp_path: Path, monkeypatch):
    """A file that does not exist yet gets a warning, because it is usually a mistake."""
    monkeypatch.chdir(tmp_path)
    Path("here.md").touch()

    here = ingest("queue", "enqueue", "h", "--path", "here.md", "--resolver", "mine", "--json")
    missing = ingest("queue", "enqueue", "m", "--path", "missing.md")

    assert str(tmp_path / "here.md") in here.stdout
    assert here.stderr == ""
    assert _line(missing).startswith("missing.md: no such file yet")
    found = open_home(ingest.home).queue.get("h")
    assert found is not None
    assert found.resolver == "mine"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("enqueue", "a"), ("either --url or --path",)),
        (("enqueue", "a", "--url", "https://a.org", "--path", "x"), ("either --url or --path",)),
        (("enqueue", "--url", "https://a.org"), ("Missing argument 'ID'",)),
        (("enqueue", "", "--path", "x"), ("id", "at least 1 character")),
        (("enqueue", "é" * 1001, "--path", "x"), ("id", "2000 bytes")),
        (("enqueue", "a", "--url", "a.org/x"), ("url", "no scheme")),
        (("enqueue", "a", "--url", "https://me:secret@a.org/"), ("url: https://a.org/", "password")),
        (("enqueue", "a", "--path", "x", "--resolver", "two words"), ("resolver",)),
        (("enqueue", "a", "--path", "x", "--meta", "{'k': 1}"), ("--meta", "JSON object", "column 2")),
        (("enqueue", "a", "--path", "x", "--meta", "[1]"), ("--meta", "JSON object", "a list")),
        (("import", "list.jsonl", "--limit", "0"), ("--limit", "0")),
        (("stats", "--format", "xml"), ("--format", "'table', 'json'")),
        (("retry-failed", "--category", "net"), ("--category", "'input'", "'provider'", "'unknown'")),
        (("refresh", "--older-than-days", "-1"), ("--older-than-days",)),
        (("refresh", "nothing"), ("nothing", "no queued document has this id")),
        (("run", "--workers", "0"), ("--workers", "0")),
        (("run", "--workers", "257"), ("--workers", "257")),
        (("run", "--max-per-host", "none"), ("--max-per-host",)),
        (("run", "--max-per-resolver", "http"), ("--max-per-resolver", "a:2,b:4", "'http'")),
        (("run", "--max-per-resolver", "http:0"), ("--max-per-resolver", "'http:0'")),
        (("run", "--max-per-resolver", "http:2,"), ("--max-per-resolver", "'http:2,'")),
        (("stat",), ("No such command 'stat'", "stats")),
    ],
)
def test_wrong_usage_is_one_line_and_code_two(
    ingest: Command, arguments: tuple[str, ...], words: tuple[str, ...]
):
    """The line names the problem, without secrets, and nothing is created."""
    line = _line(ingest("queue", *arguments, check=2))

    assert line.startswith("ingest: ")
    assert all(word in line for word in words), line
    assert "secret" not in line
    assert list(ingest.home.iterdir()) == []


@pytest.mark.parametrize("name", ["stats", "retry-failed", "refresh", "run"])
def test_stats_of_a_missing_home_create_none(tmp_path: Path, name: str):
    """A typo in --home must not look like an empty queue."""
    command = Command(tmp_path / "typo")

    assert "there is no home folder here" in _line(command("queue", name, check=2))
    assert not command.home.exists()


def _fail(home: Path, *codes: str) -> None:
    """Let the next artifacts end in errors."""
    queue = open_home(home).queue
    categories: dict[str, Any] = {"gone": "input", "busy": "provider"}
    for code in codes:
        (lease,) = queue.lease("test", 1, time.time())
        failure = Failure(categories[code], f"E_{code.upper()}", f"it is {code}.", retryable=False)
        ack(queue, lease.token, Ending("error", failure=failure), time.time())


@pytest.fixture
def failed(ingest: Command) -> Command:
    """A home in which one page is missing, one server is busy, and one artifact is queued."""
    for name in ("one", "two", "three"):
        ingest("queue", "enqueue", name, "--url", f"https://a.org/{name}")
    open_home(ingest.home).assign_batches()
    _fail(ingest.home, "gone", "busy")
    return ingest


def test_failed_artifacts_are_queued_again_by_category(failed: Command):
    """A dry run only counts."""
    looked = failed.json("queue", "retry-failed", "--dry-run")
    before = failed.json("queue", "stats")["states"]
    busy = failed.json("queue", "retry-failed", "--category", "provider")
    rest = failed("queue", "retry-failed", "--reset-attempts").stdout

    assert (looked["count"], len(looked["batches"]), looked["dry_run"]) == (2, 1, True)
    assert (before["error"], before["queued"]) == (2, 1)
    assert (busy["count"], busy["batches"], busy["dry_run"]) == (1, looked["batches"], False)
    assert rest.startswith(
        f"1 failed documents are queued again, in {looked['batches'][0]}. Start it with `ingest queue run`"
    )
    assert failed.json("queue", "stats")["states"]["queued"] == 3
    queue = open_home(failed.home).queue
    assert [artifact.attempts if (artifact := queue.get(name)) else None for name in ("one", "two")] == [0, 1]
    assert failed("queue", "retry-failed").stdout == "0 failed documents are queued again.\n"


def test_acquired_artifacts_are_refreshed_by_id_age_host_or_resolver(failed: Command):
    """Only acquired ones: the others are queued or have failed."""
    queue = open_home(failed.home).queue
    (lease,) = queue.lease("test", 1, time.time())
    ack(queue, lease.token, Ending("done", content_hash="c"), time.time())
    others = [
        failed.json("queue", "refresh", *flags)["count"]
        for flags in (("--older-than-days", "1"), ("--host", "b.org"), ("--resolver", "file"), ("one",))
    ]

    found = failed.json("queue", "refresh", "three", "--host", "a.org", "--resolver", "http")

    assert others == [0, 0, 0, 0]
    assert (found["count"], len(found["batches"])) == (1, 1)
    assert failed.json("queue", "stats")["states"]["queued"] == 1


def test_stats_give_states_waits_the_busy_quotas_and_totals(failed: Command):
    """The same figures as telemetry, in one object."""
    home = open_home(failed.home)
    home.queue.lease("somebody", 1, time.time(), ttl_s=-1)
    measures = QueueMetrics(home.ledger.database)
    measures.fetched(2_000_000, 1.5, "http")
    measures.completed("error", "http")
    measures.store()
    quotas = Quotas(home.ledger.database, {"http": QuotaOptions(rate=1, per_seconds=60)})
    for _ in range(2):
        quotas.take("http", time.time())

    found = failed.json("queue", "stats")

    assert found["states"] == {"queued": 0, "in_progress": 1, "done": 0, "skipped": 0, "error": 2}
    assert (found["total"], found["attempts"], found["delayed"], found["expired_leases"]) == (3, 3, 0, 1)
    assert (found["hosts_in_progress"], found["resolvers_in_progress"]) == ({"a.org": 1}, {"http": 1})
    assert found["oldest_queued_age_s"] is None
    assert found["quotas"] == {"http": {"consumed": 1, "throttled": 1}}
    assert found["totals"]["completed"] == {"done": 0, "skipped": 0, "error": 1}
    assert (found["totals"]["fetches"], found["totals"]["fetch_bytes"]) == (1, 2_000_000)
    assert failed.json("queue", "stats", "--format", "json") == found
    text = failed("queue", "stats").stdout
    assert "1 leases have expired" in text
    assert "In progress by host: a.org 1." in text
    assert "1 fetches, 2.0 MB, 1.5 s." in text


def test_stats_have_the_time_of_the_next_attempt(ingest: Command, tmp_path: Path):
    """And how long the oldest has waited."""
    soon = time.time() + 3600
    file = tmp_path / "list.jsonl"
    file.write_text(f'{{"url": "https://a.org/", "not_before": {soon}}}\n')
    ingest("queue", "import", file)
    open_home(ingest.home).assign_batches()

    found = ingest.json("queue", "stats")

    assert found["delayed"] == 1
    assert found["oldest_queued_age_s"] < 60
    assert found["next_at"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(soon))
    assert found["next_at"] in ingest("queue", "stats", "--format", "table").stdout


def test_stats_of_an_empty_home_leave_no_trace(ingest: Command):
    """Reading must not create a ledger."""
    assert ingest.json("queue", "stats")["total"] == 0
    assert "The queue is empty" in ingest("queue", "run").stdout
    assert list(ingest.home.iterdir()) == []

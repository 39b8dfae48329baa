"""The dry run against reality: the next run does what it shows, and never more."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from ingest_tests.cli.foretold import World, worth_reading
from ingest_tests.conftest import Command, write_notes
from ingest_tests.intake.fetch.site import Site, Visit

pytestmark = pytest.mark.graph  # runs the whole graph many times

SETTINGS = """
[execution]
run_on = "inline"
[fetch]
allow_private = true
politeness_delay_s = 0
[queue]
retry_backoff_seconds = 3600
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A site without pages."""
    with Site().open() as site:
        yield site


@pytest.fixture
def world(ingested: Command, ingested_notes: Path, site: Site) -> World:
    """Three notes, ingested."""
    (ingested.home / "ingest.toml").write_text(SETTINGS)
    return World(ingested, ingested_notes, site)


def _fresh(root: Path, more: str = "") -> Command:
    (root / "home").mkdir(parents=True)
    (root / "home" / "ingest.toml").write_text(SETTINGS + more)
    return Command(root / "home")


def all_of(count: int) -> dict[str, int]:
    """Return this number of documents in every step."""
    return dict.fromkeys(("documents", "doctags", "admission", "chunks", "embeddings"), count)


def test_a_first_run_of_a_folder_that_is_not_watched_yet(tmp_path: Path, site: Site):
    """New documents count in every stage; an unreadable one is only noticed when it runs."""
    world = World(_fresh(tmp_path), write_notes(tmp_path / "notes"), site)
    (world.folder / "broken.pdf").write_bytes(b"%PDF-1.7\ncut off")

    compared = world.agree("--input", world.folder, check=1)

    assert compared.totals == all_of(4)
    assert compared.ran["stages"]["chunks"]["succeeded"] == 3
    assert world.agree(check=1).totals == {"skipped": 3, "failed_before": 1}


def test_changed_moved_deleted_and_new_files_at_once(world: World):
    """Each counts in every step; a mere move is only noticed when it runs."""
    world.write("swarm.md", f"# Swarms\n\n{worth_reading('Now in June.')}\n")
    world.write("new/one.md", f"# One\n\n{worth_reading('A new note.')}\n")
    (world.folder / "varroa.html").rename(world.folder / "new" / "mites.html")
    (world.folder / "feeding.md").unlink()

    compared = world.agree()

    assert compared.totals == all_of(3) | {"removed": 1}
    assert compared.planned["scan"] == {
        "new": 1,
        "changed": 1,
        "moved": 1,
        "deleted": 1,
        "restored": 0,
        "unchanged": 0,
    }


def test_a_restored_file(world: World):
    """Before its rows were removed there is nothing to do, afterwards everything."""
    path = world.folder / "feeding.md"
    text = path.read_text()
    path.unlink()

    assert world.agree().totals == {"skipped": 2, "removed": 1}
    path.write_text(text)
    assert world.agree().totals == all_of(1) | {"skipped": 2}


def test_queued_artifacts_are_fetched_and_go_through_every_stage(world: World, tmp_path: Path):
    """By path and by URL; the plan does not contact the site."""
    other = tmp_path / "elsewhere.md"
    other.write_text(f"# Elsewhere\n\n{worth_reading('Queued by path.')}\n")
    world.queue("by-path", path=other)
    world.queue("by-url", url=world.page("bees", "Bees live in hives."))

    compared = world.agree()

    assert compared.totals == {"fetch": 2} | all_of(2) | {"skipped": 3}
    assert compared.planned["new_batches"] == compared.ran["batches"]["ran"]
    assert compared.visits == 1
    assert world.agree().totals == {"skipped": 5}


def test_an_abandoned_page_and_a_delayed_one(world: World):
    """The first failed before, the second is not due; neither needs a run."""
    world.queue("lost", url=world.site.page("/lost", lambda visit: visit.reply(404)))
    world.queue("later", url=world.site.page("/later", lambda visit: visit.reply(503)))

    planned = world.command.json("plan")
    world.command.json("all", check=1)
    compared = world.agree(check=1)

    assert planned["totals"]["fetch"] == 2
    assert compared.totals == {"skipped": 3, "failed_before": 1, "waiting": 1}
    assert compared.visits == 0


def test_a_refreshed_page_counts_as_a_possible_conversion(world: World):
    """Refreshed pages rarely changed."""
    world.queue("page", url=world.site.page("/page", _with_etag))
    world.command("all")
    world.command("queue", "refresh", "page")

    compared = world.agree()

    assert compared.totals == {"fetch": 1} | all_of(1) | {"skipped": 3}
    assert compared.scheduled == {}
    assert compared.visits == 1


def _with_etag(visit: Visit) -> None:
    body = f"<html><body><p>{worth_reading('It stays as it is.')}</p></body></html>".encode()
    visit.reply(200, body, content_type="text/html", etag='"1"')


def test_stored_bytes_that_are_lost_are_fetched_again_when_their_batch_runs(world: World):
    """Their rows are not changed."""
    world.queue("page", url=world.page("kept", "Its bytes will be lost."))
    world.command("all")
    for blob in (world.command.home / "data" / "blobs" / "sha256").rglob("*"):
        if blob.is_file():
            blob.unlink()

    compared = world.agree(INGEST_CHUNKS__MAX_TOKENS="64")

    assert compared.totals == {"fetch": 1} | all_of(1) | {"chunks": 4, "embeddings": 4}
    assert compared.visits == 1


def test_a_forced_run_does_everything_again_also_what_moved(world: World):
    """Known failures are retried, and have no rows further down."""
    (world.folder / "broken.pdf").write_bytes(b"%PDF-1.7\ncut off")
    world.command("all", check=1)
    (world.folder / "swarm.md").rename(world.folder / "moved.md")

    planned = world.command.json("all", "--force", "--dry-run")
    alike = world.command.json("all", "--no-resume", "--dry-run")
    ran = world.command.json("all", "--force", check=1)

    scheduled = {stage: totals["scheduled"] for stage, totals in ran["stages"].items()}
    assert scheduled == {"documents": 4, "doctags": 4, "admission": 3, "chunks": 3, "dense": 3, "lexical": 3}
    assert all(planned["totals"][step] >= count for step, count in all_of(3).items())
    assert alike["totals"] == planned["totals"]


def test_other_settings_make_stale_what_depends_on_them(world: World):
    """And nothing above that."""
    compared = world.agree(INGEST_CHUNKS__MAX_TOKENS="64")

    assert compared.totals == {"chunks": 3, "embeddings": 3}
    assert compared.scheduled == {"chunks": 3, "dense": 3, "lexical": 3}


def test_the_plan_says_why_documents_run(world: World):
    """New and changed documents, other settings, and `--force`; each document once, at the first stage."""
    world.write("swarm.md", f"# Swarms\n\n{worth_reading('Now in June.')}\n")
    world.write("new/one.md", f"# One\n\n{worth_reading('A new note.')}\n")

    planned = world.command.json("plan", INGEST_CHUNKS__MAX_TOKENS="64")
    text = world.command("plan", INGEST_CHUNKS__MAX_TOKENS="64").stdout
    forced = world.command.json("all", "--force", "--dry-run")

    assert _reasons(planned) == {
        ("documents", "new", 1),
        ("documents", "changed", 1),
        ("chunks", "settings", 2),
    }
    assert "Why: 2 with other settings or versions (from chunks on), 1 changed, 1 new." in text
    assert _reasons(forced) == {
        ("documents", "new", 1),
        ("documents", "changed", 1),
        ("documents", "forced", 2),
    }


def _reasons(planned: dict[str, Any]) -> set[tuple[str, str, int]]:
    return {(line["from"], line["reason"], line["documents"]) for line in planned["reasons"]}


def test_a_failure_that_runs_retry_counts_once(world: World):
    """It is to run, and not listed as failed before."""
    Image.new("RGB", (64, 64)).save(world.folder / "hive.png")
    no_server = {
        "INGEST_PARSING__PDF": "vlm",
        "INGEST_PARSING__VLM__URL": "http://127.0.0.1:9/v1/chat/completions",
        "INGEST_PARSING__VLM__MODEL": "none",
    }
    world.command("all", check=1, **no_server)

    planned = world.command.json("plan", **no_server)

    assert planned["totals"]["doctags"] == 1
    assert planned["totals"]["failed_before"] == 0
    assert _reasons(planned) == {("doctags", "retry", 1)}


def test_a_folder_that_moved_as_a_whole_is_not_converted_again(world: World, tmp_path: Path):
    """Only the paths in its documents' rows change."""
    world.folder.rename(tmp_path / "elsewhere")
    settings = world.command.home / "ingest.toml"
    settings.write_text(f'{SETTINGS}[sources.notes]\npath = "{tmp_path / "elsewhere"}"\n')

    compared = world.agree()

    assert compared.totals == all_of(3)
    assert compared.scheduled == {"documents": 3}


def test_a_lost_table_is_rebuilt_and_those_below_are_kept(world: World):
    """Equal fingerprints mean equal rows."""
    for file in (world.command.home / "data" / "doctags").glob("*.parquet"):
        file.unlink()

    compared = world.agree()

    assert compared.totals["doctags"] == 3
    assert "documents" not in compared.totals
    assert compared.scheduled == {"doctags": 3}


def test_only_the_chosen_steps_are_planned(world: World):
    """Work of a step above is neither done nor shown."""
    world.write("swarm.md", f"# Swarms\n\n{worth_reading('Now in June.')}\n")

    first = world.agree("--until", "doctags")
    then = world.agree("--from", "admission", "--until", "chunks")

    assert first.totals == {"documents": 1, "doctags": 1, "skipped": 2}
    assert then.totals == {"admission": 1, "chunks": 1, "skipped": 2}
    assert world.agree().totals == {"embeddings": 1, "skipped": 2}


def test_a_step_with_missing_input_is_reported_as_blocked(world: World):
    """With the message of the run, which may name another missing table."""
    world.write("another.md", f"# Another\n\n{worth_reading('In a new batch.')}\n")

    planned = world.command.json("plan", "--from", "chunks")
    ran = world.command.json("all", "--from", "chunks", check=1)

    ((batch, why),) = planned["blocked_batches"].items()
    missing = f" has no table for batch {batch}. "
    assert missing in why
    assert missing in ran["broken_batches"][batch]
    assert planned["totals"]["chunks"] == 0
    assert "would stop: doctags has no table" in world.command("plan", "--from", "chunks").stderr


def test_the_text_matches_the_object(world: World):
    """One or two sentences."""
    world.write("swarm.md", f"# Swarms\n\n{worth_reading('Now in June.')}\n")
    (world.folder / "feeding.md").unlink()

    text = world.command("plan").stdout

    assert "Would register 1, convert 1, check 1, chunk 1, embed 1 document;" in text
    assert "1 is done and skipped, 1 is removed from the tables." in text
    assert "by past runs (" in text
    world.command("all")
    assert "Nothing would be computed; 2 are done and skipped." in world.command("plan").stdout


def test_a_run_that_would_be_refused_is_refused_when_planned(world: World):
    """Before the planning."""
    done = world.command("all", "--dry-run", check=2, INGEST_CHUNKS__MAX_TOKENS="9999")

    assert "chunks.max_tokens" in done.stderr


@pytest.mark.parametrize("seed", range(2))
def test_any_history_goes_as_planned(world: World, tmp_path: Path, seed: int):
    """Files are added, changed, moved and deleted, others are queued, and runs cover some or all stages."""
    chance = random.Random(seed)
    for number in range(5):
        for _ in range(chance.randint(0, 4)):
            _something_happens(world, tmp_path, chance, f"{number}{chance.random()}")
        flags = chance.choice([(), (), ("--force",), ("--no-resume",), ("--until", "doctags")])
        world.agree(*flags)


def _something_happens(world: World, elsewhere: Path, chance: random.Random, text: str) -> None:
    files = sorted(path for path in world.folder.rglob("*") if path.is_file())
    what = chance.choice(["write", "change", "move", "delete", "queue"])
    if what == "queue":
        path = elsewhere / f"{text}.md"
        path.write_text(f"# Queued\n\n{worth_reading(text)}\n")
        world.queue(text, path=path)
    elif what == "write" or len(files) < 2:
        world.write(f"{chance.choice(('', 'deep/'))}{text}.md", f"# New\n\n{worth_reading(text)}\n")
    elif what == "change":
        chance.choice(files).write_text(f"# Changed\n\n{worth_reading(text)}\n")
    elif what == "move":
        chance.choice(files).rename(world.folder / f"moved-{text}.md")
    else:
        chance.choice(files).unlink()

"""Whatever order batches run in, also at the same time, admission ends in the same bytes."""

import hashlib
import random
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ingest_assets.app.home import Home, open_home
from ingest_assets.app.model_switch import lock_tables
from ingest_assets.app.plan import batch_states
from ingest_assets.app.stage_run import StageRun
from ingest_assets.core.items import ItemContext
from ingest_assets.stages.base import StageWorker
from ingest_assets.storage.table import commit

pytestmark = pytest.mark.graph  # runs the whole graph many times

TOPICS = ("swarming", "feeding", "varroa", "honey", "wax", "queens")
BATCHES = 6
ORDERS = 20


def text(topic: str) -> str:
    """Return a text worth admitting."""
    return (
        f"# About {topic}\n\nEvery beekeeper has to know about {topic}, and most books say too little. "
        f"In spring the colony grows quickly, and {topic} is then what decides the year.\n"
    )


def make(home: Home, stage: str, batch: str) -> None:
    """Run a stage of a batch like the runner, in this thread."""
    locks = lock_tables(home, stage, batch, lambda path: None)
    try:
        items = home.plan(stage, batch)
        worker = StageWorker(home.stages[stage], str(home.layout.home), batch)
        for item in items:
            if not item.satisfies():
                worker(item, ItemContext())
        run = StageRun(home, stage, batch, "test", print)
        items = home.stages[stage].after_batch(run.after_batch(items, ()))
        commit(home.layout, run.commit_of(items, {}))
    finally:
        locks.release()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Six batches of four documents, converted; most texts occur in several of them."""
    root = tmp_path_factory.mktemp("corpus")
    folder = root / "docs"
    folder.mkdir()
    rng = random.Random(5)
    for number in range(4 * BATCHES):
        (folder / f"{number:02d}.md").write_text(text(rng.choice(TOPICS)))
    home_path = root / "home"
    home_path.mkdir()
    (home_path / "ingest.toml").write_text("[batches]\nmax_documents = 4\n[execution]\nrun_on = 'inline'\n")
    home = open_home(home_path)
    home.watch(folder)
    home.scan()
    for batch in home.ledger.batches():
        make(home, "documents", batch)
        make(home, "doctags", batch)
    return home


def copied(corpus: Home, place: Path) -> Home:
    """Return a copy of the home without verdicts."""
    corpus.ledger.close()
    shutil.copytree(corpus.layout.home, place)
    return open_home(place)


def run_all(home: Home, order: Sequence[str]) -> int:
    """Run batches in an order, and again those that became due; return how many runs that took."""
    count, waiting = 0, list(order)
    while waiting:
        for batch in waiting:
            make(home, "admission", batch)
            make(home, "chunks", batch)
            count += 1
        waiting = behind(home)
    return count


def behind(home: Home) -> list[str]:
    """Return the batches whose verdicts or chunks are out of date."""
    stages = ("admission", "chunks")
    return [
        b for b in home.ledger.batches() if not all(s.is_complete() for s in batch_states(home, b, stages))
    ]


def hashes(home: Home) -> dict[str, str]:
    """Return the hashes of the tables that admission decides."""
    paths = [*home.layout.asset_folder("admission").glob("*.parquet")]
    paths += [*home.layout.asset_folder("chunks").glob("*.parquet")]
    return {f"{p.parent.name}/{p.name}": hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(paths)}


def admitted(home: Home) -> list[tuple[str, str]]:
    """Return text and document of all admitted ones."""
    rows = home.tables("admission").scan().filter("admitted").select("text_hash", "doc_id").collect().rows()
    return sorted(rows)


@pytest.fixture(scope="module")
def expected(corpus: Home, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The expected result: in the order of the batches, one after the other."""
    home = copied(corpus, tmp_path_factory.mktemp("expected") / "home")
    run_all(home, sorted(home.ledger.batches()))
    verdicts = admitted(home)
    home.ledger.close()

    assert len({text_hash for text_hash, _ in verdicts}) == len(verdicts) == len(TOPICS)
    return hashes(home)


@pytest.mark.parametrize("seed", range(ORDERS))
def test_any_order_ends_in_the_same_bytes(
    corpus: Home, expected: dict[str, str], tmp_path: Path, seed: int
) -> None:
    """And every text is admitted once, with its lowest number."""
    home = copied(corpus, tmp_path / "home")

    run_all(home, random.Random(seed).sample(sorted(home.ledger.batches()), BATCHES))

    assert hashes(home) == expected
    assert len(expected) == 2 * BATCHES
    home.ledger.close()


@pytest.mark.parametrize("seed", range(ORDERS))
def test_batches_that_run_at_the_same_time_end_in_the_same_bytes(
    corpus: Home, expected: dict[str, str], tmp_path: Path, seed: int
) -> None:
    """In pairs; a batch that lost a text to the other runs again."""
    home = copied(corpus, tmp_path / "home")
    batches = random.Random(seed).sample(sorted(home.ledger.batches()), BATCHES)
    for pair in zip(batches[::2], batches[1::2], strict=True):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(run_one, [home.layout.home] * 2, pair))

    run_all(home, behind(home))

    assert hashes(home) == expected
    home.ledger.close()


def run_one(path: Path, batch: str) -> None:
    """Run one batch with its own connections."""
    home = open_home(path)
    make(home, "admission", batch)
    make(home, "chunks", batch)
    home.ledger.close()


def test_deleted_winners_leave_the_tables_of_a_corpus_without_them(corpus: Home, tmp_path: Path) -> None:
    """Their first duplicates are admitted instead, in whatever order the batches run."""
    home = copied(corpus, tmp_path / "a" / "home")
    run_all(home, sorted(home.ledger.batches()))
    winners = [doc_id for _, doc_id in admitted(home)][:3]
    _delete(home, winners)
    run_all(home, random.Random(3).sample(sorted(home.ledger.batches()), BATCHES))
    after = hashes(home)
    home.ledger.close()
    shutil.rmtree(tmp_path / "a")

    home = copied(corpus, tmp_path / "a" / "home")
    _delete(home, winners)
    run_all(home, sorted(home.ledger.batches()))

    assert hashes(home) == after
    texts = [text_hash for text_hash, _ in admitted(home)]
    assert len(set(texts)) == len(texts)
    assert not set(winners) & {doc_id for _, doc_id in admitted(home)}


def _delete(home: Home, doc_ids: Sequence[str]) -> None:
    """Delete documents like a scan, without touching the shared folder."""
    import sqlalchemy as sa

    from ingest_assets.intake.ledger import bump
    from ingest_assets.intake.schema import documents

    with home.ledger.begin() as connection:
        is_one = documents.c.doc_id.in_(doc_ids)
        batches = connection.scalars(sa.select(documents.c.batch).where(is_one)).all()
        connection.execute(documents.update().where(is_one).values(deleted_at=1.0))
        bump(connection, batches)
    for batch in set(batches):
        make(home, "documents", batch)
        make(home, "doctags", batch)

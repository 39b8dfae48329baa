"""What counts as complete, and what accidents must not lose."""

from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from ingest_assets.app.graph import stages_between
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.plan import has_work
from ingest_assets.app.status import status_object
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.items import ItemContext
from ingest_assets.stages.base import StageWorker
from ingest_tests.conftest import write_notes
from ingest_tests.runs import run_batches

DOCTAGS = stages_between("documents", "doctags")
ALL = stages_between("documents", "embeddings")


def _batch(home: Home) -> str:
    (batch,) = home.ledger.batches()
    return batch


def _is_complete(home: Home) -> bool:
    return not has_work(home, _batch(home), home.ledger.batches()[_batch(home)], float("inf"))


@pytest.mark.graph
def test_rows_that_are_staged_but_not_committed_are_not_complete(home: Home, watched: Path):
    """After a crash between the last part and the commit, no reader could see the change."""
    home.scan()
    run_batches(home, ALL, {}, reason="test")
    changed = "# Swarms\n\nQuite another text about swarms, in which many words are different from before.\n"
    (watched / "swarm.md").write_text(changed)
    home.scan()
    item = next(item for item in home.plan("documents", _batch(home)) if not item.satisfies())
    worker = StageWorker(home.stages["documents"], str(home.layout.home), _batch(home))
    worker(item, ItemContext())

    before = _is_complete(home)
    report = run_batches(home, ALL, {}, reason="test")

    assert not before
    assert report.stages["documents"].succeeded == 0, "the staged row is used, not made again"
    assert report.stages["doctags"].succeeded == 1
    assert "another text" in "".join(home.tables("chunks").scan().collect()["text"])
    assert _is_complete(home)


@pytest.mark.graph
def test_completeness_is_cached_only_for_the_same_state(home: Home, watched: Path):
    """A changed file, another setting or a lost table make the batch incomplete."""
    home.scan()
    run_batches(home, ALL, {}, reason="test")
    assert _is_complete(home)
    assert home.ledger.complete_fingerprint(_batch(home))

    other = Home(
        home.layout,
        home.settings.model_copy(
            update={"chunks": home.settings.chunks.model_copy(update={"max_tokens": 64})}
        ),
    )
    assert not _is_complete(other)
    home.layout.table("chunks", _batch(home)).unlink()
    assert not _is_complete(home)


@pytest.mark.graph
def test_a_source_with_a_missing_new_path_loses_nothing(home: Home, watched: Path, tmp_path: Path):
    """A typo in the settings, or a disk that is not mounted."""
    home.layout.settings_file.write_text(f'[sources.notes]\npath = "{watched}"\n')
    run_batches_on = open_home(home.layout.home)
    run_batches_on.scan()
    run_batches(run_batches_on, DOCTAGS, {}, reason="test")
    home.layout.settings_file.write_text(f'[sources.notes]\npath = "{tmp_path / "slip"}"\n')

    slipped = open_home(home.layout.home)
    report = slipped.scan()
    run_batches(slipped, DOCTAGS, {}, reason="test")

    assert "folder does not exist" in report.problems[0][1].reason
    assert slipped.tables("doctags").scan().collect().height == 3
    assert slipped.tables("documents").failures == {}


def test_an_empty_folder_deletes_nothing_unless_the_settings_allow_it(home: Home, watched: Path, monkeypatch):
    """A disk that is not mounted leaves an empty folder."""
    home.scan()
    for path in watched.iterdir():
        path.unlink()

    doubted = home.scan()
    monkeypatch.setenv("INGEST_INTAKE__ACCEPT_EMPTY_FOLDERS", "true")
    believed = open_home(home.layout.home).scan()

    assert (doubted.deleted, believed.deleted) == (0, 3)
    assert "its documents are kept" in doubted.problems[0][1].reason


def test_documents_of_a_removed_source_are_kept(home: Home, tmp_path: Path):
    """It is not scanned any more, and its exclusions no longer apply."""
    folder = write_notes(tmp_path / "papers")
    (folder / "secret.md").write_text("# Secret\n\nNot for search.\n")
    home.layout.settings_file.write_text(f'[sources.papers]\npath = "{folder}"\nexclude = ["secret*"]\n')
    open_home(home.layout.home).scan()
    home.layout.settings_file.write_text("")

    later = open_home(home.layout.home)
    report = later.scan()

    assert (report.new, report.deleted, report.unchanged) == (0, 0, 0)
    assert later.sources() == []
    assert len(later.ledger.documents()) == 3

    assert later.watch(folder).name == "papers"
    assert [source.path for source in later.sources()] == [folder]


def test_a_folder_added_by_command_stays_watched_without_its_section(home: Home, tmp_path: Path):
    """A section that only sets its exclusions may come and go."""
    folder = write_notes(tmp_path / "papers")
    home.watch(folder)
    home.layout.settings_file.write_text(f'[sources.papers]\npath = "{folder}"\nexclude = ["*.tmp"]\n')
    open_home(home.layout.home).scan()
    home.layout.settings_file.write_text("")

    later = open_home(home.layout.home)
    (folder / "late.md").write_text("# Late\n\nArrived after the section was removed.\n")

    assert [source.path for source in later.sources()] == [folder]
    assert later.scan().new == 1


def test_problems_of_a_removed_source_are_forgotten(home: Home, tmp_path: Path):
    """A typo in a path that was corrected must not be reported again."""
    home.layout.settings_file.write_text(f'[sources.papers]\npath = "{tmp_path / "nowhere"}"\n')
    mistyped = open_home(home.layout.home)
    mistyped.scan()
    assert len(status_object(mistyped)["problems"]) == 1

    home.layout.settings_file.write_text("")

    assert status_object(open_home(home.layout.home))["problems"] == []


def test_two_sources_that_share_files_are_refused(home: Home, watched: Path):
    """Every document would be ingested twice."""
    (watched / "sub").mkdir()

    with pytest.raises(ConfigError, match="share files"):
        home.watch(watched / "sub")
    home.layout.settings_file.write_text(f'[sources.other]\npath = "{watched}"\n')
    with pytest.raises(ConfigError, match="two names, 'notes' and 'other'"):
        open_home(home.layout.home).scan()


def test_a_failed_embedding_is_data_and_not_a_failed_run(home: Home, watched: Path, monkeypatch):
    """A failed document does not affect the others, in any stage."""
    home.scan()
    run_batches(home, stages_between("documents", "chunks"), {}, reason="test")
    monkeypatch.setattr("ingest_assets.stages.lexical.count_terms", _failing_for("oxalic"))

    report = run_batches(home, ["lexical"], {}, reason="test")

    assert report.broken == {}
    assert (report.stages["lexical"].succeeded, report.stages["lexical"].failed) == (2, 1)
    monkeypatch.undo()
    monkeypatch.setenv("INGEST_HOME", str(home.layout.home))
    monkeypatch.setenv("DAGSTER_HOME", str(home.layout.state))
    again = run_batches(home, ["lexical"], {}, reason="test")
    assert again.stages["lexical"].succeeded == 1
    assert home.tables("lexical").failures == {}
    assert _failed_in_the_latest_run(home) == 0


def _failing_for(word: str):
    from ingest_assets.stages.lexical import count_terms

    def count(texts, analysis):
        if any(word in text for text in texts):
            raise ZeroDivisionError("a bug of ours")
        return count_terms(texts, analysis)

    return count


def _failed_in_the_latest_run(home: Home) -> int:
    with dg.DagsterInstance.get() as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey(["embeddings", "lexical"]))
    return event.asset_materialization.metadata["failed_in_this_batch"].value


@pytest.mark.graph
def test_a_forced_run_that_fails_says_so_and_keeps_the_old_rows(home: Home, watched: Path):
    """Silence would look like success."""
    home.scan()
    run_batches(home, DOCTAGS, {}, reason="test")
    for path in watched.iterdir():
        path.unlink()

    report = run_batches(home, ["doctags"], {"force": True}, reason="test")

    assert {error.code for error in report.errors} == {"E_DOCUMENT_MISSING"}
    assert len(report.errors) == 3
    assert home.tables("doctags").scan().collect().height == 3


def test_read_only_commands_create_no_ledger(tmp_path: Path):
    """Neither a typo nor a read-only command may create a home."""
    with pytest.raises(ConfigError, match="there is no home folder here"):
        open_home(tmp_path / "typo", creates_ledger=False)
    empty = tmp_path / "empty"
    empty.mkdir()

    home = open_home(empty, creates_ledger=False)

    assert home.ledger.documents() == []
    assert list(empty.iterdir()) == []
    assert home.tables("chunks").scan().collect().equals(pl.DataFrame())

"""The watched folders of a home."""

import contextlib
import os
import re
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.core.errors import ConfigError
from ingest_assets.intake.folders.scan import ScanLimits, WatchedFolder, add_folder, preview, scan
from ingest_assets.intake.ledger import Ledger, Source
from ingest_assets.settings.fields import NAME
from ingest_tests.intake.conftest import Watched


def test_a_folder_is_watched_once_under_its_own_name(watched: Watched, tmp_path: Path) -> None:
    """Adding it again, with another spelling, returns the same source."""
    first = add_folder(watched.ledger, watched.folder)
    again = add_folder(watched.ledger, watched.folder / ".." / "docs")
    (tmp_path / "other" / "docs").mkdir(parents=True)
    other = add_folder(watched.ledger, tmp_path / "other" / "docs")

    assert first == again == Source("docs", watched.folder)
    assert other.name == "docs-2"
    assert [source.name for source in watched.ledger.sources()] == ["docs", "docs-2"]


@given(st.text(max_size=80), st.sets(st.sampled_from(["docs", "docs-2", "folder", "a"])))
def test_a_derived_name_is_valid_in_the_settings(wish: str, taken: set[str]) -> None:
    """Otherwise the folder could not be moved into `ingest.toml`."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        for name in sorted(taken):
            ledger.put_source(Source(name, Path("/elsewhere") / name), now=0)

        source = ledger.add_source(Path(folder), wish, now=0)
        ledger.close()

    assert re.match(NAME, source.name)
    assert source.name not in taken


def test_a_missing_folder_is_refused(watched: Watched, tmp_path: Path) -> None:
    """Before anything is written."""
    with pytest.raises(ConfigError, match="does not exist"):
        add_folder(watched.ledger, tmp_path / "nowhere")

    assert watched.ledger.sources() == []


def test_a_folder_whose_name_is_not_utf8_is_refused_in_one_line(watched: Watched) -> None:
    """The ledger could not store it."""
    folder = Path(os.fsdecode(os.fsencode(watched.folder) + b"/dir\xfe"))
    folder.mkdir()

    with pytest.raises(ConfigError):
        add_folder(watched.ledger, folder)


def test_a_folder_that_moved_keeps_its_documents_and_batches_run_again(
    watched: Watched, tmp_path: Path
) -> None:
    """Rows contain the path, so they are rebuilt; ids and batches stay."""
    watched.write("a.md")
    scan(watched.ledger, [WatchedFolder("docs", watched.folder)], ScanLimits())
    before, revisions = watched.ledger.documents(), watched.ledger.batches()
    moved = watched.folder.rename(tmp_path / "moved")

    report = scan(watched.ledger, [WatchedFolder("docs", moved)], ScanLimits())

    assert (report.unchanged, report.new, report.deleted) == (1, 0, 0)
    assert watched.ledger.documents() == before
    assert [source.path for source in watched.ledger.sources()] == [moved]
    assert watched.ledger.batches()[before[0].batch] > revisions[before[0].batch]


def test_exclusions_apply_to_their_source(watched: Watched, tmp_path: Path) -> None:
    """The product's own folders are excluded from every source."""
    watched.write("a.tmp")
    watched.write("data/x.md")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b.tmp").write_text("x")
    folders = [WatchedFolder("docs", watched.folder, ("*.tmp",)), WatchedFolder("more", tmp_path / "more")]

    scan(watched.ledger, folders, ScanLimits(), frozenset({watched.folder / "data"}))

    assert [document.doc_id for document in watched.ledger.documents()] == ["more:b.tmp"]


def test_a_preview_scans_folders_that_are_not_in_the_ledger(watched: Watched) -> None:
    """And does not add them."""
    watched.write("a.md")

    report = preview(watched.ledger, [WatchedFolder("docs", watched.folder)], ScanLimits())

    assert report.new == 1
    assert watched.ledger.sources() == []
    assert watched.ledger.documents() == []


class MeetingLedger(Ledger):
    """A ledger whose readers wait for each other, so that both read before either writes."""

    meeting: threading.Barrier

    def sources(self) -> list[Source]:
        found = super().sources()
        with contextlib.suppress(threading.BrokenBarrierError):  # the other reader is already done
            self.meeting.wait(timeout=1)
        return found


def test_two_folders_of_one_name_added_at_once_are_two_sources(watched: Watched, tmp_path: Path) -> None:
    """The second must not treat the first one's documents as its own deleted ones."""
    MeetingLedger.meeting = threading.Barrier(2)
    folders = [tmp_path / parent / "docs" for parent in ("one", "two")]
    ledgers = [MeetingLedger(tmp_path / "ledger.sqlite") for _ in folders]
    adders = []
    for ledger, folder in zip(ledgers, folders, strict=True):
        folder.mkdir(parents=True)
        adders.append(threading.Thread(target=add_folder, args=(ledger, folder)))

    for adder in adders:
        adder.start()
    for adder in adders:
        adder.join()

    found = Ledger(tmp_path / "ledger.sqlite").sources()
    assert {source.path for source in found} == set(folders)

"""Blobs are stored once per hash, and interrupted downloads continue."""

import hashlib
import os
from pathlib import Path

import pytest

from ingest_assets.core.layout import Layout
from ingest_assets.storage.blobs import ContentStore

NOTE = {"if_range": '"one"'}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """An empty home."""
    return Layout(tmp_path)


def _store(layout: Layout, content: bytes, key: str = "key") -> Path:
    with ContentStore(layout).download(key) as download:
        download.restart(None)
        download.write(content)
        return download.finish().path


def _break_off(layout: Layout, content: bytes, note: dict[str, str] | None) -> None:
    """Write part of a download without finishing it."""
    with ContentStore(layout).download("key") as download:
        download.restart(note)
        download.write(content)


def test_a_blob_is_stored_under_its_hash(layout: Layout):
    """Subfolders of two letters keep each folder small."""
    sha = hashlib.sha256(b"bees").hexdigest()

    path = _store(layout, b"bees")

    assert path == layout.data / "blobs" / "sha256" / sha[:2] / sha
    assert path.read_bytes() == b"bees"
    assert ContentStore(layout).find(sha) == path
    assert ContentStore(layout).find("0" * 64) is None


def test_a_blob_that_lost_bytes_is_replaced(layout: Layout):
    """A blob is trusted only if name and size match."""
    path = _store(layout, b"bees")
    path.write_bytes(b"be")

    _store(layout, b"bees")

    assert path.read_bytes() == b"bees"


def test_a_download_with_a_note_is_continued(layout: Layout):
    """Size, note and hash are those of the earlier bytes."""
    _break_off(layout, b"half", NOTE)

    with ContentStore(layout).download("key") as download:
        assert (download.size_bytes, download.note) == (4, NOTE)
        download.write(b" and half")
        blob = download.finish()

    assert blob.path.read_bytes() == b"half and half"
    assert blob.content_hash == hashlib.sha256(b"half and half").hexdigest()
    assert list(layout.partials.iterdir()) == []


def test_a_download_without_a_note_leaves_nothing(layout: Layout):
    """Without a note, the bytes cannot be continued."""
    _break_off(layout, b"half", None)

    assert list(layout.partials.iterdir()) == []
    with ContentStore(layout).download("key") as download:
        assert (download.size_bytes, download.note) == (0, {})


def test_a_continued_download_can_be_interrupted_again(layout: Layout):
    """Every attempt adds to it."""
    _break_off(layout, b"one", NOTE)
    with ContentStore(layout).download("key") as download:
        download.write(b"two")

    with ContentStore(layout).download("key") as download:
        assert download.size_bytes == 6


def test_two_downloads_of_one_key_have_files_of_their_own(layout: Layout):
    """The second neither waits for the first nor reads or changes its file."""
    store = ContentStore(layout)
    _break_off(layout, b"half", NOTE)

    with store.download("key") as first:
        with store.download("key") as second:
            assert (first.size_bytes, second.size_bytes) == (4, 0)
            second.restart(NOTE)
            second.write(b"other")
        first.write(b"!")
        assert first.finish().path.read_bytes() == b"half!"
    assert list(layout.partials.iterdir()) == []


def test_a_new_download_is_safe_from_one_that_just_finished(layout: Layout):
    """After `finish` and before `close`, another download can already use the name."""
    store = ContentStore(layout)
    with store.download("key") as first:
        first.restart(NOTE)
        first.write(b"one")
        first.finish()
        second = store.download("key")
        partial = second.__enter__()
        partial.restart(NOTE)
        partial.write(b"two")

    assert partial.finish().path.read_bytes() == b"two"
    second.__exit__(None, None, None)


def test_checkpoints_are_written_during_a_download(layout: Layout):
    """A killed process runs no clean-up, so the note must be written before."""
    with ContentStore(layout, checkpoint_bytes=10).download("key") as download:
        download.restart(NOTE)
        download.write(b"0123456789")
        download.write(b"abc")

        assert '"safe_bytes": 10' in layout.partial_note("key").read_text()


def test_old_leftovers_are_swept_and_active_downloads_are_not(layout: Layout):
    """Only old files without a lock are removed."""
    store = ContentStore(layout)
    _break_off(layout, b"half", NOTE)
    scratch = layout.blob("ab" * 32).with_name(".abc.tmp")
    scratch.parent.mkdir(parents=True)
    scratch.write_bytes(b"x")
    for path in (layout.partial("key"), scratch):
        os.utime(path, (1000, 1000))
    with store.download("busy") as busy:
        busy.restart(NOTE)
        os.utime(layout.partial("busy"), (1000, 1000))

        assert store.sweep(before_epoch_s=500) == 0
        assert store.sweep(before_epoch_s=2000) == 2
        assert layout.partial("busy").exists()
    assert list(layout.partials.iterdir()) == []
    assert not scratch.exists()


def test_sweeping_an_empty_home_is_harmless(layout: Layout):
    """Nothing was ever fetched."""
    assert ContentStore(layout).sweep(before_epoch_s=1e12) == 0

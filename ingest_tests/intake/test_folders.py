"""Which files of a folder are documents, and the problems reported for others."""

import contextlib
import os
import unicodedata
from pathlib import Path

import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.intake.folders.walk import Exclusions, require_folder
from ingest_tests.intake.conftest import Watched

NFC, NFD = (unicodedata.normalize(form, "é.md") for form in ("NFC", "NFD"))


def problems(watched: Watched) -> dict[str, str]:
    """Return path and reason of the last scan's problems."""
    return {path: reason for _, path, reason in watched.ledger.problems()}


def test_hidden_and_lock_files_are_no_documents(watched: Watched) -> None:
    """Editors and version control create them everywhere."""
    for name in (".hidden.md", ".git/config.md", "~$report.docx", "sub/.DS_Store", "real.md", "~tilde.md"):
        watched.write(name)

    watched.scan()

    assert set(watched.living()) == {"real.md", "~tilde.md"}
    assert problems(watched) == {}


def test_excluded_paths_are_no_documents(watched: Watched) -> None:
    """Patterns match the whole relative path; an excluded folder is not entered."""
    for name in ("a.md", "a.tmp", "sub/b.tmp", "drafts/c.md", "sub/drafts.md"):
        watched.write(name)

    watched.scan(Exclusions(("*.tmp", "drafts")))

    assert set(watched.living()) == {"a.md", "sub/drafts.md"}


def test_the_home_inside_a_source_is_not_scanned(watched: Watched) -> None:
    """A home inside the folder it watches must not ingest its own tables."""
    for name in ("a.md", "data/chunks.md", "state/log.md", "other/data/b.md"):
        watched.write(name)

    watched.scan(Exclusions(folders=frozenset({watched.folder / "data", watched.folder / "state"})))

    assert set(watched.living()) == {"a.md", "other/data/b.md"}


def test_an_empty_file_is_a_document(watched: Watched) -> None:
    """It fails later, with a reason; here it would only disappear."""
    watched.write("empty.md", "")

    assert watched.scan().new == 1


@pytest.mark.parametrize("name", [NFC, NFD], ids=["NFC", "NFD"])
def test_the_id_is_normalized_and_the_path_is_not(watched: Watched, name: str) -> None:
    """The id is NFC; the path opens the file."""
    watched.write(name)

    watched.scan()

    (document,) = watched.ledger.documents()
    assert document.doc_id == f"docs:{NFC}"
    assert (watched.folder / document.path).is_file()


def test_of_two_unicode_forms_of_a_name_one_is_reported(watched: Watched) -> None:
    """They would share an id; the reader of the report can rename one."""
    watched.write(NFC, "composed")
    watched.write(NFD, "decomposed")

    first = watched.scan()
    second = watched.scan()

    (path, reason) = next(iter(problems(watched).items()))
    assert (first.new, second.changed, second.unchanged) == (1, 0, 1)
    assert {path} | set(watched.living()) == {NFC, NFD}
    assert "in another Unicode form; rename one" in reason


@pytest.mark.parametrize(("known", "late"), [(NFC, NFD), (NFD, NFC)], ids=["NFC first", "NFD first"])
def test_a_later_unicode_form_does_not_replace_the_known_one(watched: Watched, known: str, late: str) -> None:
    """The known file did not change, so its document must not."""
    watched.write(known, "known")
    watched.scan()
    before = watched.known()
    watched.write(late, "late")

    report = watched.scan()

    assert report.changed == 0
    assert watched.known() == before
    assert set(problems(watched)) == {late}


def test_a_name_that_is_not_utf8_is_reported(watched: Watched) -> None:
    """No table could store it; other files are entered, also those below a folder with such a name."""
    watched.write("good.md")
    Path(os.fsdecode(os.fsencode(watched.folder) + b"/bad\xff.md")).write_text("x")
    folder = Path(os.fsdecode(os.fsencode(watched.folder) + b"/dir\xfe"))
    folder.mkdir()
    (folder / "inner.md").write_text("x")

    report = watched.scan()

    assert (report.new, len(report.problems)) == (1, 2)
    assert set(problems(watched)) == {"bad\\xff.md", "dir\\xfe/inner.md"}
    assert all("not valid UTF-8; rename" in reason for reason in problems(watched).values())


def test_a_link_that_leaves_the_folder_is_reported_and_not_followed(watched: Watched, tmp_path: Path) -> None:
    """Watching a folder must not read the rest of the machine."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("x")
    watched.write("real.md")
    (watched.folder / "file.md").symlink_to(outside / "secret.md")
    (watched.folder / "folder").symlink_to(outside)

    watched.scan()

    assert set(watched.living()) == {"real.md"}
    assert set(problems(watched)) == {"file.md", "folder"}


def test_links_within_the_folder_are_files_only(watched: Watched) -> None:
    """A linked file is a document; a linked folder is not entered."""
    watched.write("sub/real.md", "x")
    (watched.folder / "linked.md").symlink_to(watched.folder / "sub" / "real.md")
    (watched.folder / "sub" / "up").symlink_to(watched.folder)
    (watched.folder / "broken.md").symlink_to(watched.folder / "nothing.md")

    watched.scan()

    assert set(watched.living()) == {"linked.md", "sub/real.md"}


def test_a_link_to_itself_does_not_stop_the_scan(watched: Watched) -> None:
    """One bad entry does not affect the others."""
    watched.write("real.md")
    (watched.folder / "loop.md").symlink_to(watched.folder / "loop.md")

    watched.scan()

    assert set(watched.living()) == {"real.md"}


def test_a_pipe_is_not_opened(watched: Watched) -> None:
    """Reading a named pipe would block."""
    watched.write("real.md")
    os.mkfifo(watched.folder / "pipe.md")

    assert watched.scan().new == 1


def test_a_folder_to_watch_must_exist(tmp_path: Path) -> None:
    """One line: what is wrong and what to do."""
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=r"nowhere: does not exist; give a folder with documents\.$"):
        require_folder(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"file: is a file, not a folder; give a folder with documents\.$"):
        require_folder(tmp_path / "file")
    assert require_folder(tmp_path / "." / "x" / "..") == tmp_path


def test_a_path_too_long_to_be_an_id_is_reported(watched: Watched) -> None:
    """Each name in it is valid; other files are entered."""
    deep = "/".join(["x" * 200] * 10)
    watched.write("a.md")
    with contextlib.chdir(watched.folder):
        for _ in range(10):
            Path("x" * 200).mkdir()
            os.chdir("x" * 200)
        Path("long.md").write_text("text")

    watched.scan()

    assert set(watched.living()) == {"a.md"}
    assert problems(watched) == {
        f"{deep}/long.md": "path is longer than 2000 bytes; shorten the names of its folders"
    }

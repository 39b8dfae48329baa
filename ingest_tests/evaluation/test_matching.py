"""Which file is the truth about which document."""

from pathlib import Path, PurePosixPath

import pytest

from ingest_assets.evaluation.parse import find_truth


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """`documents` and `truth`, each with a folder for a kind."""
    for name in ("documents/pdf", "documents/html", "truth/pdf", "truth/html"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("pdf/2305.1v2-pg9.md", "html/page.html.md", "html/page.md"):
        (tmp_path / "truth" / name).write_text("x")
    return tmp_path / "documents", tmp_path / "truth"


@pytest.mark.parametrize(
    ("document", "truth"),
    [("html/page.html", "html/page.html.md"), ("pdf/2305.1v2-pg9.pdf", "pdf/2305.1v2-pg9.md")],
)
def test_the_whole_name_comes_before_the_stem(folders: tuple[Path, Path], document: str, truth: str):
    """Both are in use, and names hold dots."""
    assert find_truth(PurePosixPath(document), *folders) == folders[1] / truth


def test_the_folders_may_be_those_of_one_kind(folders: tuple[Path, Path]):
    """Both, or only one of them."""
    documents, truth = folders
    wanted = truth / "html/page.html.md"

    assert find_truth(PurePosixPath("page.html"), documents / "html", truth / "html") == wanted
    assert find_truth(PurePosixPath("page.html"), documents / "html", truth) == wanted
    assert find_truth(PurePosixPath("html/page.html"), documents, truth / "html") == wanted


def test_a_document_of_another_folder_does_not_match(folders: tuple[Path, Path]):
    """Equal names in two folders are two documents."""
    assert find_truth(PurePosixPath("pdf/page.html"), *folders) is None


def test_markdown_is_its_own_truth_unless_there_is_one(folders: tuple[Path, Path]):
    """What it says is what it should read as."""
    documents, truth = folders

    assert find_truth(PurePosixPath("notes/a.MD"), documents, truth) == documents / "notes/a.MD"
    assert find_truth(PurePosixPath("html/page.md"), documents, truth) == truth / "html/page.md"
    assert find_truth(PurePosixPath("notes/a.docx"), documents, truth) is None

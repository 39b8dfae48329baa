"""Documents read by the product's own reader, and what the report says of them."""

from pathlib import Path, PurePosixPath

import pytest

from ingest_assets.evaluation.markdown import read_markdown
from ingest_assets.evaluation.parse import (
    Measured,
    find_truth,
    markdown_of,
    measure,
    measure_all,
    report_object,
    sample_of,
)
from ingest_assets.parsing.reader import DocumentReader, parsed
from ingest_assets.settings.parsing import ParsingOptions
from ingest_tests.evaluation.pages import HANDBOOK
from ingest_tests.parsing.documents import pdf


@pytest.fixture(scope="module")
def reader() -> DocumentReader:
    """A reader as a worker process holds it."""
    return DocumentReader(ParsingOptions(), threads=2)


def _write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_markdown_document_is_read_as_it_is_written(reader: DocumentReader, tmp_path: Path):
    """Ours goes through Docling and back."""
    path = _write(tmp_path / "handbook.md", HANDBOOK)

    scores = measure(sample_of("handbook.md", path, path), reader).scores

    assert scores is not None
    assert (scores.word_ratio, scores.headings.f1, scores.heading_levels) == (1, 1, 1)
    assert (scores.cells.f1, scores.cell_contents.f1, scores.order) == (1, 1, 1)


def test_a_page_says_how_fast_it_was_read(reader: DocumentReader, tmp_path: Path):
    """Pages where there are pages."""
    lines = [f"Bees fly at {at} degrees and come home before it rains." for at in range(10, 16)]
    placed = [(72, 600 - 14 * at, 11, line) for at, line in enumerate(lines)]
    path = _write(tmp_path / "page.pdf", pdf([placed]))
    truth = _write(tmp_path / "page.md", " ".join(lines))

    measured = measure(sample_of("page.pdf", path, truth), reader)

    assert measured.scores is not None
    assert measured.scores.word_ratio == 1.0
    assert (measured.pages, measured.sample.kind) == (1, "pdf")
    assert report_object([measured])["total"]["pages_per_s"] > 0


def test_a_document_that_cannot_be_read_costs_only_itself(reader: DocumentReader, tmp_path: Path):
    """It is in the report with its code; the next one is read."""
    locked = _write(tmp_path / "a.pdf", pdf([[(72, 700, 12, "secret")]], password="honey"))
    gone = tmp_path / "b.pdf"
    page = _write(tmp_path / "c.html", "<html><body><h1>Bees</h1><p>They fly.</p></body></html>")
    samples = [sample_of(path.name, path, None) for path in (locked, gone, page)]

    measured = list(measure_all(samples, reader))

    codes = [one.error.code if one.error else None for one in measured]
    assert codes == ["E_PARSE_PASSWORD", "E_DOCUMENT_MISSING", None]
    report = report_object(measured)
    assert [one["status"] for one in report["documents"]] == ["failed", "failed", "read"]
    assert report["documents"][2]["chars"] == len("BeesTheyfly.")
    assert {name: report["total"][name] for name in ("documents", "read", "failed", "scored")} == {
        "documents": 3,
        "read": 1,
        "failed": 2,
        "scored": 0,
    }
    assert report["total"]["word_ratio"] is None


def test_a_formula_that_nobody_decoded_counts_for_neither_side():
    """The reference leaves its place open; this product keeps its characters for search."""
    from docling_core.types.doc import DocItemLabel, DoclingDocument

    document = DoclingDocument(name="a")
    document.add_text(DocItemLabel.FORMULA, text="", orig="a2 + 8")
    document.add_text(DocItemLabel.TEXT, text="text")
    ours = parsed(document, name="a.pdf", parser="x", warnings=())

    assert markdown_of(ours, like="<!-- formula-not-decoded -->\n\ntext").endswith("decoded -->\n\ntext")
    assert "a2 + 8" in markdown_of(ours, like="$$a^2 + 8$$\n\ntext")


def test_totals_are_means_over_the_documents_that_have_such_a_figure(reader: DocumentReader, tmp_path: Path):
    """A document without tables says nothing about tables."""
    plain = _write(tmp_path / "plain.md", "only text\n")
    wrong = _write(tmp_path / "wrong.md", HANDBOOK.replace("scale", "stone"))
    truth = _write(tmp_path / "truth.md", HANDBOOK)

    measured: list[Measured] = list(
        measure_all([sample_of("plain.md", plain, plain), sample_of("wrong.md", wrong, truth)], reader)
    )

    total = report_object(measured)["by_kind"]["md"]
    assert total["table_cell_f1"] == round(11 / 12, 4)
    assert total["pooled"]["table_cells"]["wanted"] == 12
    words = len(read_markdown(HANDBOOK).words)
    assert total["word_ratio"] == pytest.approx((1 + (words - 1) / words) / 2, abs=1e-4)


# Which file is the truth about which document.


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

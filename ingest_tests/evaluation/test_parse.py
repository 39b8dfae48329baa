"""Documents read by the product's reader, and the report about them."""

from pathlib import Path, PurePosixPath

import pytest

from ingest_assets.evaluation.markdown import read_markdown
from ingest_assets.evaluation.parse_quality import (
    DocumentResult,
    find_truth,
    markdown_of,
    measure,
    measure_all,
    report_object,
    sample_of,
)
from ingest_assets.parsing.reader import DocumentReader, parsed_document
from ingest_assets.settings.parsing import ParsingOptions
from ingest_tests.evaluation.pages import HANDBOOK
from ingest_tests.parsing.documents import pdf


@pytest.fixture(scope="module")
def reader() -> DocumentReader:
    """A reader like that of a worker process."""
    return DocumentReader(ParsingOptions(), threads=2)


def _write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_markdown_document_equals_itself_after_parsing(reader: DocumentReader, tmp_path: Path):
    """It is read by Docling and exported again."""
    path = _write(tmp_path / "handbook.md", HANDBOOK)

    scores = measure(sample_of("handbook.md", path, path), reader).scores

    assert scores is not None
    assert (scores.word_ratio, scores.headings.f1, scores.heading_levels) == (1, 1, 1)
    assert (scores.cells.f1, scores.cell_contents.f1, scores.order) == (1, 1, 1)


def test_the_report_has_pages_per_second(reader: DocumentReader, tmp_path: Path):
    """For formats with pages."""
    lines = [f"Bees fly at {at} degrees and come home before it rains." for at in range(10, 16)]
    placed = [(72, 600 - 14 * at, 11, line) for at, line in enumerate(lines)]
    path = _write(tmp_path / "page.pdf", pdf([placed]))
    truth = _write(tmp_path / "page.md", " ".join(lines))

    measured = measure(sample_of("page.pdf", path, truth), reader)

    assert measured.scores is not None
    assert measured.scores.word_ratio == 1.0
    assert (measured.pages, measured.sample.kind) == (1, "pdf")
    assert report_object([measured])["total"]["pages_per_s"] > 0


def test_an_unreadable_document_does_not_stop_the_others(reader: DocumentReader, tmp_path: Path):
    """The report has its error code; the next document is read."""
    locked = _write(tmp_path / "a.pdf", pdf([[(72, 700, 12, "secret")]], password="honey"))
    gone = tmp_path / "b.pdf"
    page = _write(tmp_path / "c.html", "<html><body><h1>Bees</h1><p>They fly.</p></body></html>")
    samples = [sample_of(path.name, path, None) for path in (locked, gone, page)]

    measured = list(measure_all(samples, reader))

    codes = [result.error.code if result.error else None for result in measured]
    assert codes == ["E_PARSE_PASSWORD", "E_DOCUMENT_MISSING", None]
    report = report_object(measured)
    assert [entry["status"] for entry in report["documents"]] == ["failed", "failed", "read"]
    assert report["documents"][2]["chars"] == len("BeesTheyfly.")
    assert {name: report["total"][name] for name in ("documents", "read", "failed", "scored")} == {
        "documents": 3,
        "read": 1,
        "failed": 2,
        "scored": 0,
    }
    assert report["total"]["word_ratio"] is None


def test_an_undecoded_formula_is_not_compared():
    """The truth has a placeholder; the product keeps the raw characters for search."""
    from docling_core.types.doc import DocItemLabel, DoclingDocument

    document = DoclingDocument(name="a")
    document.add_text(DocItemLabel.FORMULA, text="", orig="a2 + 8")
    document.add_text(DocItemLabel.TEXT, text="text")
    parsed = parsed_document(document, name="a.pdf", parser="x", warnings=())

    assert markdown_of(parsed, like="<!-- formula-not-decoded -->\n\ntext").endswith("decoded -->\n\ntext")
    assert "a2 + 8" in markdown_of(parsed, like="$$a^2 + 8$$\n\ntext")


def test_totals_are_means_over_the_documents_with_the_figure(reader: DocumentReader, tmp_path: Path):
    """A document without tables does not count for tables."""
    plain = _write(tmp_path / "plain.md", "only text\n")
    wrong = _write(tmp_path / "wrong.md", HANDBOOK.replace("scale", "stone"))
    truth = _write(tmp_path / "truth.md", HANDBOOK)

    measured: list[DocumentResult] = list(
        measure_all([sample_of("plain.md", plain, plain), sample_of("wrong.md", wrong, truth)], reader)
    )

    total = report_object(measured)["by_kind"]["md"]
    assert total["table_cell_f1"] == round(11 / 12, 4)
    assert total["pooled"]["table_cells"]["wanted"] == 12
    words = len(read_markdown(HANDBOOK).words)
    assert total["word_ratio"] == pytest.approx((1 + (words - 1) / words) / 2, abs=1e-4)


# Find the truth of a document.


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """`documents` and `truth`, each with a subfolder per format."""
    for name in ("documents/pdf", "documents/html", "truth/pdf", "truth/html"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("pdf/2305.1v2-pg9.md", "html/page.html.md", "html/page.md"):
        (tmp_path / "truth" / name).write_text("x")
    return tmp_path / "documents", tmp_path / "truth"


@pytest.mark.parametrize(
    ("document", "truth"),
    [("html/page.html", "html/page.html.md"), ("pdf/2305.1v2-pg9.pdf", "pdf/2305.1v2-pg9.md")],
)
def test_the_full_name_has_priority_over_the_stem(folders: tuple[Path, Path], document: str, truth: str):
    """Both are in use, and names contain dots."""
    assert find_truth(PurePosixPath(document), *folders) == folders[1] / truth


def test_the_folders_can_be_those_of_one_format(folders: tuple[Path, Path]):
    """Both, or only one of them."""
    documents, truth = folders
    expected = truth / "html/page.html.md"

    assert find_truth(PurePosixPath("page.html"), documents / "html", truth / "html") == expected
    assert find_truth(PurePosixPath("page.html"), documents / "html", truth) == expected
    assert find_truth(PurePosixPath("html/page.html"), documents, truth / "html") == expected


def test_a_document_of_another_folder_does_not_match(folders: tuple[Path, Path]):
    """Equal names in two folders are two documents."""
    assert find_truth(PurePosixPath("pdf/page.html"), *folders) is None


def test_markdown_is_its_own_truth_unless_there_is_one(folders: tuple[Path, Path]):
    """Its source is the expected result."""
    documents, truth = folders

    assert find_truth(PurePosixPath("notes/a.MD"), documents, truth) == documents / "notes/a.MD"
    assert find_truth(PurePosixPath("html/page.md"), documents, truth) == truth / "html/page.md"
    assert find_truth(PurePosixPath("notes/a.docx"), documents, truth) is None

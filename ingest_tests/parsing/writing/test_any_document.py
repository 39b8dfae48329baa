"""Any document that Docling can represent is written exactly as Docling writes it."""

import pytest
from docling_core.types.doc import DoclingDocument
from hypothesis import HealthCheck, Phase, given, settings

from ingest_assets.parsing.fast_docling import as_flow, doctags_of
from ingest_tests.parsing.writing.oracle import TAGGED, UNTAGGED, as_docling_writes, relabelled
from ingest_tests.parsing.writing.random_documents import documents

# random boxes may extend beyond their page
pytestmark = pytest.mark.filterwarnings("ignore:.*outside page bounds")

any_of = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@any_of
@given(documents())
def test_any_document_without_pages_is_written_as_docling_writes_it(document: DoclingDocument):
    """Web pages, Markdown, Office files."""
    _check(document)


@any_of
@given(documents(rare=True))
def test_so_is_one_with_charts_and_page_breaks_in_words(document: DoclingDocument):
    """What only Docling's own writer can do."""
    _check(document)


@any_of
@given(documents(page_count=3, rare=True))
def test_any_document_with_pages_is_written_as_docling_writes_it(document: DoclingDocument):
    """PDFs and images: with places and page breaks."""
    _check(document)


@any_of
@given(documents(labels=TAGGED + UNTAGGED) | documents(labels=TAGGED + UNTAGGED, page_count=2))
def test_labels_without_a_tag_are_written_as_text(document: DoclingDocument):
    """Docling's own export raises an error at them."""
    before = document.model_copy(deep=True)
    is_copied = any(text.label in UNTAGGED for text in document.texts)

    assert doctags_of(document) == as_docling_writes(relabelled(before))
    assert document == before or not is_copied


def test_most_of_the_drawn_documents_are_written_in_one_go():
    """Else the tests above would compare Docling's writer with itself."""
    found = []

    @settings(max_examples=40, derandomize=True, database=None, phases=[Phase.generate])
    @given(documents())
    def draw(document: DoclingDocument) -> None:
        found.append(as_flow(document) is not None)

    draw()

    assert sum(found) > 0.7 * len(found)


def _check(document: DoclingDocument) -> None:
    """Docling repairs a document while writing; ours may make only the same changes."""
    theirs = document.model_copy(deep=True)

    assert doctags_of(document) == as_docling_writes(theirs)
    assert document == theirs

"""Ids are stable, lossless, and the same on every machine."""

import unicodedata
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.core.identity import (
    canonical_json,
    chunk_id,
    document_name,
    file_doc_id,
    fingerprints,
    sha256_text,
)

anything = st.text(st.characters(), max_size=20)


def test_a_doc_id_is_the_source_and_the_path() -> None:
    """Never a slug: two names that differ stay apart."""
    assert file_doc_id("docs", "a b/c-d.PDF") == "docs:a b/c-d.PDF"
    assert file_doc_id("docs", "a b.md") != file_doc_id("docs", "a-b.md")
    assert file_doc_id("docs", "A.md") != file_doc_id("docs", "a.md")


def test_a_doc_id_is_the_same_in_any_unicode_form() -> None:
    """A folder copied from a Mac spells its names in NFD and means the same files."""
    composed, decomposed = (unicodedata.normalize(form, "Müller/é.md") for form in ("NFC", "NFD"))

    assert composed != decomposed
    assert file_doc_id("docs", decomposed) == file_doc_id("docs", composed) == f"docs:{composed}"


@given(
    st.text(min_size=1, max_size=60).filter(lambda name: not set(name) & {"/", "\0"} and name not in "...")
)
def test_a_file_is_called_what_its_path_says(name: str) -> None:
    """Whatever its characters: an address spells most of them with percent signs."""
    path = Path("/srv/my docs") / name

    assert document_name(path.as_uri()) == path.name


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("https://example.org/papers/2024/report.pdf", "report.pdf"),
        ("https://example.org/papers/annual%20report%3F.pdf?download=1#page=2", "annual report?.pdf"),
        ("https://example.org/archive%2Fold.pdf", "old.pdf"),
        ("https://example.org/papers/", "example.org"),
        ("https://user@Example.org:8080", "example.org"),
        ("https://example.org/.", "example.org"),
        ("s3://bucket/key.html", "key.html"),
        ("nothing-like-an-address", "nothing-like-an-address"),
    ],
)
def test_a_fetched_document_is_called_by_the_end_of_its_address(uri: str, name: str) -> None:
    """Or by its host, which is better than nothing."""
    assert document_name(uri) == name


def test_a_chunk_id_is_what_it_was_in_the_first_release() -> None:
    """Search indexes hold these ids: they may never change by accident."""
    assert chunk_id("docs:a.md", 0, "Hello") == "b199db82-e6cb-cd20-841b-35fcdec1685c"


@given(anything, st.integers(0, 9), anything)
def test_a_chunk_id_is_a_uuid_of_document_ordinal_and_text(doc_id: str, ordinal: int, text: str) -> None:
    """The ordinal keeps the same text twice in one document apart."""
    found = chunk_id(doc_id, ordinal, text)

    assert str(uuid.UUID(found)) == found
    assert found == chunk_id(doc_id, ordinal, unicodedata.normalize("NFKC", text))
    assert found != chunk_id(doc_id, ordinal + 1, text)
    assert found != chunk_id(doc_id + "x", ordinal, text)
    assert found != chunk_id(doc_id, ordinal, text + "x")


@given(st.dictionaries(anything, st.integers() | anything, max_size=5))
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: dict[str, int | str]) -> None:
    """Equal settings must give equal hashes."""
    turned = dict(reversed(value.items()))

    assert canonical_json(turned) == canonical_json(value)
    assert sha256_text(canonical_json(turned)) == sha256_text(canonical_json(value))


def test_each_ingredient_changes_the_fingerprint() -> None:
    """Whatever can change the rows must make them stale."""
    base = ("chunks", "1", {"max_tokens": 256}, {"docling-core": "2.0"}, "up")
    others = [
        ("dense", *base[1:]),
        ("chunks", "2", *base[2:]),
        ("chunks", "1", {"max_tokens": 128}, *base[3:]),
        ("chunks", "1", base[2], {"docling-core": "2.1"}, "up"),
        (*base[:4], "other"),
    ]

    marks = {fingerprints(*given[:4])(given[4]) for given in (base, *others)}

    assert len(marks) == 6

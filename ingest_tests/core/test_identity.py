"""Ids are stable, distinct, and the same on every machine."""

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
    """Not a slug: different names give different ids."""
    assert file_doc_id("docs", "a b/c-d.PDF") == "docs:a b/c-d.PDF"
    assert file_doc_id("docs", "a b.md") != file_doc_id("docs", "a-b.md")
    assert file_doc_id("docs", "A.md") != file_doc_id("docs", "a.md")


def test_a_doc_id_is_the_same_in_any_unicode_form() -> None:
    """A folder copied from macOS has names in NFD, for the same files."""
    composed, decomposed = (unicodedata.normalize(form, "Müller/é.md") for form in ("NFC", "NFD"))

    assert composed != decomposed
    assert file_doc_id("docs", decomposed) == file_doc_id("docs", composed) == f"docs:{composed}"


@given(
    st.text(min_size=1, max_size=60).filter(lambda name: not set(name) & {"/", "\0"} and name not in "...")
)
def test_the_name_of_a_file_uri_is_the_file_name(name: str) -> None:
    """With any characters: a URI percent-encodes most of them."""
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
def test_a_fetched_document_has_the_last_part_of_its_url_as_name(uri: str, name: str) -> None:
    """Or the host if the path is empty."""
    assert document_name(uri) == name


def test_chunk_ids_are_those_of_the_first_release() -> None:
    """Search indexes contain these ids, so they must not change by accident."""
    assert chunk_id("docs:a.md", 0, "Hello") == "b199db82-e6cb-cd20-841b-35fcdec1685c"


@given(anything, st.integers(0, 9), anything)
def test_a_chunk_id_is_a_uuid_of_document_ordinal_and_text(doc_id: str, ordinal: int, text: str) -> None:
    """The ordinal distinguishes equal texts in one document."""
    base_id = chunk_id(doc_id, ordinal, text)

    assert str(uuid.UUID(base_id)) == base_id
    assert base_id == chunk_id(doc_id, ordinal, unicodedata.normalize("NFKC", text))
    assert base_id != chunk_id(doc_id, ordinal + 1, text)
    assert base_id != chunk_id(doc_id + "x", ordinal, text)
    assert base_id != chunk_id(doc_id, ordinal, text + "x")


@given(st.dictionaries(anything, st.integers() | anything, max_size=5))
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: dict[str, int | str]) -> None:
    """Equal settings must give equal hashes."""
    reordered = dict(reversed(value.items()))

    assert canonical_json(reordered) == canonical_json(value)
    assert sha256_text(canonical_json(reordered)) == sha256_text(canonical_json(value))


def test_each_input_changes_the_fingerprint() -> None:
    """Everything that can change rows must make them stale."""
    base = ("chunks", "1", {"max_tokens": 256}, {"docling-core": "2.0"}, "up")
    others = [
        ("dense", *base[1:]),
        ("chunks", "2", *base[2:]),
        ("chunks", "1", {"max_tokens": 128}, *base[3:]),
        ("chunks", "1", base[2], {"docling-core": "2.1"}, "up"),
        (*base[:4], "other"),
    ]

    distinct = {fingerprints(*inputs[:4])(inputs[4]) for inputs in (base, *others)}

    assert len(distinct) == 6

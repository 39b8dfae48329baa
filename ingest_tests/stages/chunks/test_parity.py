"""Chunks are those of Docling's HybridChunker: text, headings, pages, items, order and tokens."""

import contextlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from docling_core.transforms.chunker.hybrid_chunker import HybridChunker
from docling_core.transforms.chunker.tokenizer.huggingface import HuggingFaceTokenizer
from docling_core.types.doc import DoclingDocument
from hypothesis import given
from hypothesis import strategies as st

import ingest_assets
from ingest_assets.core.items import ItemContext
from ingest_assets.settings.chunks import ChunkOptions, resolve_options
from ingest_assets.stages.chunks.cutter import Cutter
from ingest_assets.stages.chunks.fast_document import parse_document
from ingest_assets.stages.doctags import DoctagsStage
from ingest_tests.bench.reading import document_item
from ingest_tests.conftest import examples_times
from ingest_tests.stages.chunks.conftest import tokenizer_of
from ingest_tests.stages.chunks.documents import made

SAMPLES = Path(ingest_assets.__file__).parent / "samples" / "documents"
READ_QUICKLY = {".md", ".html", ".docx", ".pptx", ".xlsx"}


def by_docling(document: DoclingDocument, kind: str, options: ChunkOptions) -> list[tuple[Any, ...]]:
    """Return HybridChunker's chunks of a document."""
    counting = HuggingFaceTokenizer(
        tokenizer=tokenizer_of(kind), max_tokens=resolve_options(options).max_tokens
    )
    chunker = HybridChunker(tokenizer=counting, merge_peers=resolve_options(options).merge_peers)
    chunks = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for chunk in chunker.chunk(document):
            contextualized = chunker.contextualize(chunk)
            meta = chunk.meta
            chunks.append((chunk.text, contextualized, tuple(meta.headings or ()), *_items(meta.doc_items)))
            chunks[-1] += (counting.count_tokens(contextualized),)
    return chunks


def by_us(document: DoclingDocument, kind: str, options: ChunkOptions) -> list[tuple[Any, ...]]:
    """Return our cutter's chunks of a document, invisible ones included."""
    cutter = Cutter(tokenizer_of(kind), resolve_options(options))
    pieces = cutter._chunk(document)
    return [
        (
            piece.text,
            piece.contextualized,
            piece.headings,
            *_items(piece.items),
            cutter.count(piece.contextualized),
        )
        for piece in pieces
    ]


def _items(items: Sequence[Any]) -> tuple[list[str], list[int]]:
    pages = sorted({origin.page_no for item in items for origin in item.prov})
    return [item.self_ref for item in items], pages


def _outcome(way: Any, *arguments: Any) -> Any:
    """Return the chunks, or the type of error if Docling itself fails on a document."""
    with contextlib.suppress(ValueError):
        return way(*arguments)
    return ValueError


@pytest.mark.parametrize("merge_peers", [True, False])
@examples_times(0.5)
@given(seed=st.integers(0, 10**9), max_tokens=st.sampled_from([16, 40, 120, 254]))
def test_any_document_is_cut_as_docling_cuts_it(seed: int, max_tokens: int, merge_peers: bool) -> None:
    """Lists, inline groups, tables of all shapes, captions, notes, pictures, code, layers, formats, links."""
    options = ChunkOptions(max_tokens=max_tokens, merge_peers=merge_peers)
    document = made(seed)

    assert _outcome(by_us, document, "packaged", options) == _outcome(
        by_docling, document, "packaged", options
    )


@pytest.mark.parametrize("tables", ["values", "rows"])
@examples_times(0.25)
@given(seed=st.integers(0, 10**9), max_tokens=st.sampled_from([16, 40, 120, 254]))
def test_table_options_change_no_other_text(seed: int, max_tokens: int, tables: Any) -> None:
    """Except that each item is listed once."""
    options = ChunkOptions(max_tokens=max_tokens, tables=tables)
    document = made(seed, has_tables=False)

    expected = [
        (*before, list(dict.fromkeys(refs)), *after)
        for *before, refs, pages, tokens in by_docling(document, "packaged", options)
        for after in [(pages, tokens)]
    ]
    assert by_us(document, "packaged", options) == expected


@pytest.mark.parametrize("seed", range(3))
def test_with_any_tokenizer(kind: str, seed: int) -> None:
    """WordPiece is counted word by word, byte pairs and sentence pieces by the tokenizer."""
    options, document = ChunkOptions(max_tokens=60), made(seed, 10)

    assert by_us(document, kind, options) == by_docling(document, kind, options)


@pytest.fixture(scope="module")
def samples() -> dict[str, str]:
    """Real documents of five formats, as stored."""
    paths = sorted(path for path in SAMPLES.iterdir() if path.suffix in READ_QUICKLY)
    rows = {path.name: DoctagsStage().rows(document_item(path), ItemContext()) for path in paths}
    return {name: row["document"][0].as_py() for name, row in rows.items()}


@pytest.mark.parametrize("max_tokens", [pytest.param(32, marks=pytest.mark.slow), 254])
def test_real_documents_are_cut_as_docling_cuts_them(samples: dict[str, str], max_tokens: int) -> None:
    """Read from stored doctags with our parser and with Docling's."""
    options = ChunkOptions(max_tokens=max_tokens)

    different = [
        name
        for name, text in samples.items()
        if by_us(parse_document(text), "packaged", options)
        != by_docling(DoclingDocument.model_validate_json(text), "packaged", options)
    ]

    assert (len(samples) > 8, different) == (True, [])


@examples_times(0.5)
@given(seed=st.integers(0, 10**9))
def test_a_document_is_read_as_docling_reads_it(seed: int) -> None:
    """With the same types, and iterated in the same order."""
    text = made(seed).model_dump_json()
    ours, docling = parse_document(text), DoclingDocument.model_validate_json(text)

    assert ours.export_to_dict() == docling.export_to_dict()
    assert [type(item) for item in ours.texts] == [type(item) for item in docling.texts]
    for choice in ({}, {"with_groups": True}, {"traverse_pictures": True}, {"page_no": 2}):
        walks = [
            [(item.self_ref, depth) for item, depth in d.iterate_items(**choice)] for d in (ours, docling)
        ]
        assert walks[0] == walks[1]

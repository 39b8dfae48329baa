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
from ingest_assets.settings.chunks import ChunkOptions, settled
from ingest_assets.stages.chunks.cut import Cutter
from ingest_assets.stages.chunks.fast_document import document_from
from ingest_assets.stages.doctags import DoctagsStage
from ingest_tests.bench.reading import document_item
from ingest_tests.conftest import examples_times
from ingest_tests.stages.chunks.conftest import tokenizer_of
from ingest_tests.stages.chunks.documents import made

SAMPLES = Path(ingest_assets.__file__).parent / "samples" / "documents"
READ_QUICKLY = {".md", ".html", ".docx", ".pptx", ".xlsx"}


def by_docling(document: DoclingDocument, kind: str, options: ChunkOptions) -> list[tuple[Any, ...]]:
    """What HybridChunker makes of a document."""
    counting = HuggingFaceTokenizer(tokenizer=tokenizer_of(kind), max_tokens=settled(options).max_tokens)
    chunker = HybridChunker(tokenizer=counting, merge_peers=settled(options).merge_peers)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for chunk in chunker.chunk(document):
            contextualized = chunker.contextualize(chunk)
            meta = chunk.meta
            found.append((chunk.text, contextualized, tuple(meta.headings or ()), *_items(meta.doc_items)))
            found[-1] += (counting.count_tokens(contextualized),)
    return found


def by_us(document: DoclingDocument, kind: str, options: ChunkOptions) -> list[tuple[Any, ...]]:
    """What ours makes of it, invisible chunks included."""
    cutter = Cutter(tokenizer_of(kind), settled(options))
    pieces = cutter._chunked(document)
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
    """The chunks; or the kind of error, where Docling itself stumbles over a document."""
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
def test_how_tables_are_written_changes_nothing_else(seed: int, max_tokens: int, tables: Any) -> None:
    """But that each item is named once."""
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
    """WordPiece word by word, byte pairs and sentence pieces by asking."""
    options, document = ChunkOptions(max_tokens=60), made(seed, 10)

    assert by_us(document, kind, options) == by_docling(document, kind, options)


@pytest.fixture(scope="module")
def samples() -> dict[str, str]:
    """Real documents of five formats, as stored."""
    paths = sorted(path for path in SAMPLES.iterdir() if path.suffix in READ_QUICKLY)
    rows = {path.name: DoctagsStage().rows(document_item(path), ItemContext()) for path in paths}
    return {name: row["document"][0].as_py() for name, row in rows.items()}


@pytest.mark.parametrize("max_tokens", [pytest.param(32, marks=pytest.mark.slow), 254])
def test_real_documents_are_cut_alike(samples: dict[str, str], max_tokens: int) -> None:
    """From what the doctags stage stored, read our quick way and Docling's."""
    options = ChunkOptions(max_tokens=max_tokens)

    different = [
        name
        for name, text in samples.items()
        if by_us(document_from(text), "packaged", options)
        != by_docling(DoclingDocument.model_validate_json(text), "packaged", options)
    ]

    assert (len(samples) > 8, different) == (True, [])


@examples_times(0.5)
@given(seed=st.integers(0, 10**9))
def test_a_document_is_read_as_docling_reads_it(seed: int) -> None:
    """By its labels instead of by trial; and walked in the same order."""
    text = made(seed).model_dump_json()
    ours, docling = document_from(text), DoclingDocument.model_validate_json(text)

    assert ours.export_to_dict() == docling.export_to_dict()
    assert [type(item) for item in ours.texts] == [type(item) for item in docling.texts]
    for choice in ({}, {"with_groups": True}, {"traverse_pictures": True}, {"page_no": 2}):
        walks = [
            [(item.self_ref, depth) for item, depth in d.iterate_items(**choice)] for d in (ours, docling)
        ]
        assert walks[0] == walks[1]

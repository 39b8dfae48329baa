"""Options beyond Docling's: small chunks joined, overlaps, tables by rows, profiles."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from docling_core.types.doc import DocItemLabel, DoclingDocument
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.core.errors import ConfigError
from ingest_assets.settings.chunks import PROFILES, ChunkOptions, resolve_options
from ingest_assets.stages.chunks.cutter import Cutter, Piece, is_table
from ingest_tests.stages.chunks.conftest import tokenizer_of
from ingest_tests.stages.chunks.documents import made, table_of


def cut(document: DoclingDocument, **options: Any) -> tuple[list[Piece], Cutter]:
    """Return a document's pieces, and its cutter."""
    cutter = Cutter(tokenizer_of("packaged"), resolve_options(ChunkOptions(**options)))
    return cutter.pieces(document)[0], cutter


def sections(*sizes: int, levels: Sequence[int] = ()) -> DoclingDocument:
    """Return a document with a section of each of these numbers of words."""
    document = DoclingDocument(name="x")
    document.add_title("Bridges")
    for number, size in enumerate(sizes):
        document.add_heading(f"Part {number}", level=1)
        document.add_text(DocItemLabel.TEXT, " ".join(f"cable{number}" for _ in range(size)))
    return document


def grid(rows: int) -> DoclingDocument:
    """A table of three columns with a header."""
    values = [[f"value {row} {column}" for column in range(3)] for row in range(1, rows)]
    document = DoclingDocument(name="x")
    document.add_table(table_of(["name 0", "name 1", "name 2"], *values))
    return document


def squeezed(text: str) -> str:
    return "".join(text.split())


ANY_CUT = st.fixed_dictionaries(
    {
        "max_tokens": st.integers(32, 200),
        "min_tokens": st.integers(0, 16),
        "overlap_tokens": st.integers(0, 16),
        "soft_barrier_margin": st.integers(0, 16),
        "merge_peers": st.booleans(),
    }
)


@given(seed=st.integers(0, 10**9), options=ANY_CUT)
def test_with_any_options_nothing_is_lost_moved_or_too_large(seed: int, options: dict[str, Any]) -> None:
    """Without overlaps, the texts follow each other as in Docling's chunks."""
    document = made(seed)
    pieces, cutter = cut(document, **options)
    plain, _ = cut(
        document,
        max_tokens=options["max_tokens"] - options["overlap_tokens"],
        merge_peers=options["merge_peers"],
    )

    assert max((cutter.count(piece.contextualized) for piece in pieces), default=0) <= options["max_tokens"]
    refs = [[item.self_ref for piece in side for item in piece.items] for side in (pieces, plain)]
    assert list(dict.fromkeys(refs[0])) == list(dict.fromkeys(refs[1]))
    rest = squeezed("".join(piece.text for piece in pieces))
    for piece in plain:
        _, text, rest = rest.partition(squeezed(piece.text))
        assert text == squeezed(piece.text)


def test_small_sections_are_joined_below_the_headings_they_share() -> None:
    """Their other headings become text, so that no heading is lost."""
    (piece,), _ = cut(sections(3, 3), max_tokens=64, min_tokens=20)

    assert piece.headings == ("Bridges",)
    assert piece.text == "Part 0\ncable0 cable0 cable0\nPart 1\ncable1 cable1 cable1"


def test_a_soft_barrier_is_crossed_only_below_the_margin() -> None:
    """The same two sections, at the margin and within it."""
    document = sections(3, 12)
    (whole,), cutter = cut(document, max_tokens=64, min_tokens=20)
    size = cutter.count(whole.contextualized)

    at_the_margin, _ = cut(document, max_tokens=64, min_tokens=20, soft_barrier_margin=64 - size)
    within_it, _ = cut(document, max_tokens=64, min_tokens=20, soft_barrier_margin=min(32, 65 - size))

    assert len(at_the_margin) == 1
    assert [piece.headings for piece in within_it] == [("Bridges", "Part 0"), ("Bridges", "Part 1")]


def test_large_chunks_are_not_joined() -> None:
    """Only chunks below `min_tokens` are."""
    pieces, _ = cut(sections(9, 9, 9), max_tokens=200, min_tokens=8)

    assert len(pieces) == 3


def test_a_chunk_begins_with_the_end_of_the_one_before_it_in_its_section() -> None:
    """Whole words, at most `overlap_tokens`; never from another section."""
    words = [f"w{number}" for number in range(150)]
    document = DoclingDocument(name="x")
    for heading in ("One", "Two"):
        document.add_heading(heading)
        document.add_text(DocItemLabel.TEXT, " ".join(words))

    pieces, cutter = cut(document, max_tokens=64, overlap_tokens=12)

    for before, piece in pairwise(pieces):
        if before.headings == piece.headings:
            assert before.text.endswith(piece.repeated.rstrip())
            assert set(piece.repeated.split()) <= set(words)
            assert 6 < cutter.count(piece.repeated) <= 12
        else:
            assert piece.repeated == ""
    assert " ".join(piece.text for piece in pieces) == " ".join([*words, *words])


@pytest.mark.parametrize("rows", [3, 40])
def test_a_table_by_rows_has_its_header_in_every_chunk(rows: int) -> None:
    """Every row occurs once; a table that fits is not cut."""
    pieces, cutter = cut(grid(rows), max_tokens=100, tables="rows", merge_peers=False)

    lines = [piece.text.splitlines() for piece in pieces]
    assert (len(pieces) == 1) == (rows == 3)
    assert all(is_table(piece) and cutter.count(piece.contextualized) <= 100 for piece in pieces)
    assert all("name 0" in first and set(rule) <= set("|-: ") for first, rule, *_ in lines)
    values = [line.split("|")[1].strip() for _, _, *body in lines for line in body]
    assert values == [f"value {row} 0" for row in range(1, rows)]


def test_profiles_are_defaults_and_options_override_them() -> None:
    """The default profile is Docling's own chunking, with nothing added."""
    plain = resolve_options(ChunkOptions())
    long = resolve_options(ChunkOptions(profile="long-context", overlap_tokens=10))

    assert (plain.max_tokens, plain.min_tokens, plain.overlap_tokens, plain.merge_peers) == (256, 0, 0, True)
    assert (long.max_tokens, long.min_tokens, long.overlap_tokens) == (1024, 128, 10)
    assert resolve_options(ChunkOptions(profile="cpu-small")).max_tokens == 128
    assert resolve_options(ChunkOptions(max_tokens=0)) == plain


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("limit", [32, 256, 8192])
def test_a_profile_shrinks_to_the_embedders_limit(profile: Any, limit: int) -> None:
    """With room for its special tokens."""
    cut = resolve_options(ChunkOptions(profile=profile), limit, special_tokens=2)

    assert cut.max_tokens == min(PROFILES[profile]["max_tokens"], limit - 2)
    assert max(cut.min_tokens, cut.overlap_tokens, cut.soft_barrier_margin) <= cut.max_tokens // 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 300}, "chunks.max_tokens: 300 is more than the 256 tokens that the embedder reads"),
        ({"min_tokens": 200}, "chunks.min_tokens: 200 is more than half of the 254 tokens of a chunk"),
        ({"overlap_tokens": 128}, "chunks.overlap_tokens: 128 is more than half of the 254 tokens"),
    ],
)
def test_impossible_numbers_are_rejected_with_value_and_limit(options: dict[str, int], message: str) -> None:
    """Before anything starts."""
    with pytest.raises(ConfigError, match=message):
        resolve_options(ChunkOptions(**options), 256, special_tokens=2)


def test_max_tokens_at_the_embedders_limit_leaves_room_for_special_tokens() -> None:
    """So that the model reads a chunk to its end."""
    assert resolve_options(ChunkOptions(max_tokens=256), 256, special_tokens=2).max_tokens == 254

"""The blocks of a page: tables, pictures, paragraphs, list items, captions, code and formulas."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingest_assets.parsing.pdf.boxes import Box, bounding_box
from ingest_assets.parsing.pdf.code import is_code, join_code
from ingest_assets.parsing.pdf.content import PageContent, Region
from ingest_assets.parsing.pdf.contents import find_contents
from ingest_assets.parsing.pdf.formulas import complete_formulas, is_formula, is_prose, merge_formula_pieces
from ingest_assets.parsing.pdf.heights import normalize_heights
from ingest_assets.parsing.pdf.lines import Line, Word, WordIndex
from ingest_assets.parsing.pdf.markers import caption_of
from ingest_assets.parsing.pdf.paragraphs import paragraphs_of, starts_item
from ingest_assets.parsing.pdf.rows import lines_of
from ingest_assets.parsing.pdf.runs import runs_of
from ingest_assets.parsing.pdf.zones import Zone, zones_of

MIN_SHARE = 0.5  # of a block's area that is inside a region, for the region's label to count
MAX_FORMULA_LINES = 12


@dataclass(frozen=True, slots=True)
class Block:
    """A unit of a page with Docling's label."""

    label: str
    box: Box
    lines: tuple[Line, ...] = ()
    votes: tuple[tuple[str, float], ...] = ()  # the detector's labels and their scores
    inner: tuple["Block", ...] = ()  # text inside a picture
    score: float = 1.0

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)

    @property
    def size(self) -> float:
        return min((line.size for line in self.lines), default=0.0)

    def vote(self, *labels: str) -> float:
        """Return the detector's highest score for one of these labels."""
        return max((score for label, score in self.votes if label in labels), default=0.0)


def blocks_of(content: PageContent) -> list[Block]:
    """Return the blocks of a page; each line is in exactly one block."""
    zones = zones_of(content)
    free, by_zone = _assign_to_zones([piece for piece in content.pieces if piece.turn == 0], zones)
    words = WordIndex(normalize_heights(word for word in content.words if word.turn == 0))
    blocks = [_zone_block(zone, lines_of(pieces, words, ())) for zone, pieces in by_zone]
    blocks += _turned_blocks(content, zones)
    lines = lines_of(free, words, content.regions)
    tocs = find_contents(lines)
    blocks += [Block("document_index", bounding_box(line.box for line in toc), tuple(toc)) for toc in tocs]
    rest = [line for line in lines if not any(line in toc for toc in tocs)]
    return [*blocks, *_text_blocks(runs_of(rest, content.regions, content.rules), content.regions)]


def _assign_to_zones(
    pieces: Sequence[Word], zones: Sequence[Zone]
) -> tuple[list[Word], list[tuple[Zone, list[Word]]]]:
    """Return the text outside tables and pictures, and that inside each; captions are always outside."""
    free: list[Word] = []
    assigned: list[tuple[Zone, list[Word]]] = [(zone, []) for zone in zones]
    for piece in pieces:
        inside = next((inner for zone, inner in assigned if piece.box.share_in(zone.box) > 0.5), None)
        (free if inside is None or caption_of(piece.text) else inside).append(piece)
    return free, assigned


def _zone_block(zone: Zone, lines: Sequence[Line]) -> Block:
    inner = tuple(Block("text", line.box, (line,)) for line in lines)
    return Block(zone.label, zone.box, tuple(lines), (), inner, zone.score)


def _turned_blocks(content: PageContent, zones: Sequence[Zone]) -> list[Block]:
    """Return text at another angle: page furniture at the sides, else text or part of a picture."""
    blocks = []
    for order, piece in enumerate(content.pieces):
        if piece.turn == 0 or not piece.text.strip():
            continue
        line = Line(piece.box, piece.text, piece.box.width, piece.font, order=order)
        is_aside = not 0.1 * content.width < piece.box.middle_x < 0.9 * content.width
        inside = any(zone.label == "picture" and zone.box.contains_middle_of(piece.box) for zone in zones)
        label = "page_header" if is_aside and not inside else "text"
        blocks.append(Block(label, piece.box, (line,)))
    return blocks


def _text_blocks(runs: Sequence[Sequence[Line]], regions: Sequence[Region]) -> list[Block]:
    code = [run for run in runs if is_code(run)]
    parts = [tuple(part) for run in runs if run not in code for part in paragraphs_of(run)]
    formulas = [part for part in parts if _is_formula(part, regions)]
    others = [part for part in parts if part not in formulas]
    completed, rest = complete_formulas(
        merge_formula_pieces([(bounding_box(line.box for line in part), part) for part in formulas]), others
    )
    return [
        *(_block("code", lines, regions) for lines in join_code(code)),
        *(_block("formula", lines, regions) for _, lines in completed),
        *(_block(_label(part), part, regions) for part in rest),
    ]


def _is_formula(lines: Sequence[Line], regions: Sequence[Region]) -> bool:
    if len(lines) > MAX_FORMULA_LINES or is_prose(lines):
        return False
    return is_formula(lines, _block("formula", lines, regions).vote("equation"))


def _block(label: str, lines: Sequence[Line], regions: Sequence[Region]) -> Block:
    box = bounding_box(line.box for line in lines)
    votes = tuple((r.label, r.score) for r in regions if box.share_in(r.box) > MIN_SHARE)
    return Block(label, box, tuple(lines), votes)


def _label(lines: Sequence[Line]) -> str:
    if caption_of(lines[0].text):
        return "caption"
    return "list_item" if starts_item(lines[0].text) else "text"

"""A page as blocks: tables, pictures, and its text in paragraphs, items, captions, code and formulas."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingest_assets.parsing.pdf.boxes import Box, around
from ingest_assets.parsing.pdf.code import is_code, joined_code
from ingest_assets.parsing.pdf.content import PageContent, Region
from ingest_assets.parsing.pdf.contents import contents_of
from ingest_assets.parsing.pdf.formulas import completed, gathered, is_formula, is_prose
from ingest_assets.parsing.pdf.heights import evened
from ingest_assets.parsing.pdf.lines import Line, Word, WordsByPlace
from ingest_assets.parsing.pdf.markers import caption_of
from ingest_assets.parsing.pdf.paragraphs import paragraphs_of, starts_item
from ingest_assets.parsing.pdf.rows import lines_of
from ingest_assets.parsing.pdf.runs import runs_of
from ingest_assets.parsing.pdf.zones import Zone, zones_of

MIN_SHARE = 0.5  # of a block, inside a region, for the region to say something about it
MAX_FORMULA_LINES = 12


@dataclass(frozen=True, slots=True)
class Block:
    """Something on a page that belongs together, with Docling's name for what it is."""

    label: str
    box: Box
    lines: tuple[Line, ...] = ()
    votes: tuple[tuple[str, float], ...] = ()  # what the detector took it for, with its certainty
    inner: tuple["Block", ...] = ()  # text inside a picture
    score: float = 1.0

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)

    @property
    def size(self) -> float:
        return min((line.size for line in self.lines), default=0.0)

    def vote(self, *labels: str) -> float:
        """How certain the detector was of one of these."""
        return max((score for label, score in self.votes if label in labels), default=0.0)


def blocks_of(content: PageContent) -> list[Block]:
    """The blocks of a page: every line in exactly one of them."""
    zones = zones_of(content)
    free, held = _shared_out([piece for piece in content.pieces if piece.turn == 0], zones)
    words = WordsByPlace(evened(word for word in content.words if word.turn == 0))
    found = [_zone_block(zone, lines_of(pieces, words, ())) for zone, pieces in held]
    found += _turned_blocks(content, zones)
    lines = lines_of(free, words, content.regions)
    contents = contents_of(lines)
    found += [Block("document_index", around(line.box for line in own), tuple(own)) for own in contents]
    rest = [line for line in lines if not any(line in own for own in contents)]
    return [*found, *_text_blocks(runs_of(rest, content.regions, content.rules), content.regions)]


def _shared_out(
    pieces: Sequence[Word], zones: Sequence[Zone]
) -> tuple[list[Word], list[tuple[Zone, list[Word]]]]:
    """The text outside of all tables and pictures, and that of each; captions never belong to them."""
    free: list[Word] = []
    held: list[tuple[Zone, list[Word]]] = [(zone, []) for zone in zones]
    for piece in pieces:
        home = next((own for zone, own in held if piece.box.share_in(zone.box) > 0.5), None)
        (free if home is None or caption_of(piece.text) else home).append(piece)
    return free, held


def _zone_block(zone: Zone, lines: Sequence[Line]) -> Block:
    inner = tuple(Block("text", line.box, (line,)) for line in lines)
    return Block(zone.label, zone.box, tuple(lines), (), inner, zone.score)


def _turned_blocks(content: PageContent, zones: Sequence[Zone]) -> list[Block]:
    """Text that runs another way than the page's: inside a picture a part of it, at the sides furniture."""
    found = []
    for order, piece in enumerate(content.pieces):
        if piece.turn == 0 or not piece.text.strip():
            continue
        line = Line(piece.box, piece.text, piece.box.width, piece.font, order=order)
        is_aside = not 0.1 * content.width < piece.box.middle_x < 0.9 * content.width
        inside = any(zone.label == "picture" and zone.box.holds_middle_of(piece.box) for zone in zones)
        label = "page_header" if is_aside and not inside else "text"
        found.append(Block(label, piece.box, (line,)))
    return found


def _text_blocks(runs: Sequence[Sequence[Line]], regions: Sequence[Region]) -> list[Block]:
    code = [run for run in runs if is_code(run)]
    parts = [tuple(part) for run in runs if run not in code for part in paragraphs_of(run)]
    formulas = [part for part in parts if _is_formula(part, regions)]
    others = [part for part in parts if part not in formulas]
    whole, rest = completed(
        gathered([(around(line.box for line in part), part) for part in formulas]), others
    )
    return [
        *(_block("code", lines, regions) for lines in joined_code(code)),
        *(_block("formula", lines, regions) for _, lines in whole),
        *(_block(_label(part), part, regions) for part in rest),
    ]


def _is_formula(lines: Sequence[Line], regions: Sequence[Region]) -> bool:
    if len(lines) > MAX_FORMULA_LINES or is_prose(lines):
        return False
    return is_formula(lines, _block("formula", lines, regions).vote("equation"))


def _block(label: str, lines: Sequence[Line], regions: Sequence[Region]) -> Block:
    box = around(line.box for line in lines)
    votes = tuple((r.label, r.score) for r in regions if box.share_in(r.box) > MIN_SHARE)
    return Block(label, box, tuple(lines), votes)


def _label(lines: Sequence[Line]) -> str:
    if caption_of(lines[0].text):
        return "caption"
    return "list_item" if starts_item(lines[0].text) else "text"

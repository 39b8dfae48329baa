"""PowerPoint samples: the varroa treatment plan and the first practical day of the beginners' course."""

from pathlib import Path

import pptx
from pptx.presentation import Presentation
from pptx.slide import Slide
from pptx.util import Inches, Pt

from ingest_tests.sample_builders.archive import freeze
from ingest_tests.sample_builders.markup import AUTHOR, BUILT_AT, Block, Item, read_blocks, split_at

NAMES = ("varroa-treatment-plan", "first-inspection-course")
TITLE_SLIDE, TITLE_AND_CONTENT, TITLE_ONLY = 0, 1, 5


def build_all(folder: Path) -> list[Path]:
    """Both slide decks, written into the folder."""
    return [build_pptx(folder / f"{name}.pptx", read_blocks(f"{name}.md")) for name in NAMES]


def build_pptx(path: Path, blocks: list[Block]) -> Path:
    """One deck: the opening blocks make the title slide, each heading starts a further slide."""
    deck = pptx.Presentation()
    for slide_blocks in split_at("heading", blocks):
        add_slide(deck, slide_blocks)
    properties = deck.core_properties
    properties.author, properties.title = AUTHOR, blocks[0].text
    properties.created = properties.modified = BUILT_AT.replace(tzinfo=None)
    properties.last_modified_by = AUTHOR
    deck.save(str(path))
    return freeze(path)


def add_slide(deck: Presentation, blocks: list[Block]) -> None:
    """One slide; its layout follows from the blocks it holds."""
    slide = deck.slides.add_slide(deck.slide_layouts[layout_of(blocks)])
    slide.shapes.title.text = blocks[0].text
    for block in blocks[1:]:
        add_block(slide, block)


def layout_of(blocks: list[Block]) -> int:
    """The index of the default template's layout that fits these blocks."""
    if blocks[0].kind == "title":
        return TITLE_SLIDE
    return TITLE_ONLY if any(block.kind == "table" for block in blocks) else TITLE_AND_CONTENT


def add_block(slide: Slide, block: Block) -> None:
    """Put a block on the slide, or into its speaker notes."""
    notes = slide.notes_slide.notes_text_frame
    if block.kind == "note" and notes is not None:
        notes.text = block.text
    elif block.kind == "table":
        add_table(slide, block)
    elif block.kind == "bullets":
        add_bullets(slide, block.items)
    else:
        slide.placeholders[1].text = block.text


def add_bullets(slide: Slide, items: tuple[Item, ...]) -> None:
    """Fill the content placeholder, one paragraph per bullet."""
    frame = slide.placeholders[1].text_frame
    for index, item in enumerate(items):
        paragraph = frame.paragraphs[0] if index == 0 else frame.add_paragraph()
        paragraph.text, paragraph.level, paragraph.font.size = item.text, item.level, Pt(24 - 4 * item.level)


def add_table(slide: Slide, block: Block) -> None:
    """A table across the slide."""
    rows, columns = len(block.rows), len(block.rows[0])
    size = (Inches(0.5), Inches(1.8), Inches(9), Inches(0.6 * rows))
    table = slide.shapes.add_table(rows, columns, *size).table
    for row, cells in enumerate(block.rows):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
            table.cell(row, column).text_frame.paragraphs[0].font.size = Pt(16)

"""Word samples: the association's rules and the minutes of a committee meeting."""

from pathlib import Path

import docx
from docx.document import Document

from ingest_tests.sample_builders.archive import freeze
from ingest_tests.sample_builders.markup import AUTHOR, BUILT_AT, Block, read_blocks

NAMES = ("association-rules", "committee-minutes-march-2024")
TEXT_STYLES = {"paragraph": "Normal", "note": "Quote", "caption": "Caption"}
HEADING_LEVELS = {"title": 0, "heading": 1, "subheading": 2}


def build_all(folder: Path) -> list[Path]:
    """Both Word documents, written into the folder."""
    return [build_docx(folder / f"{name}.docx", read_blocks(f"{name}.md")) for name in NAMES]


def build_docx(path: Path, blocks: list[Block]) -> Path:
    """One Word document with real heading, list and table styles."""
    document = docx.Document()
    for block in blocks:
        add_block(document, block)
    properties = document.core_properties
    properties.author, properties.title = AUTHOR, blocks[0].text
    properties.created = properties.modified = BUILT_AT.replace(tzinfo=None)
    document.save(str(path))
    return freeze(path)


def add_block(document: Document, block: Block) -> None:
    """Append one block in the Word style of its kind."""
    if block.kind in HEADING_LEVELS:
        document.add_heading(block.text, level=HEADING_LEVELS[block.kind])
    elif block.kind == "table":
        add_table(document, block)
    elif block.kind in ("bullets", "numbers"):
        add_list(document, block)
    else:
        document.add_paragraph(block.text, style=TEXT_STYLES[block.kind])


def add_list(document: Document, block: Block) -> None:
    """Append list lines; deeper lines use the second list style."""
    style = "List Bullet" if block.kind == "bullets" else "List Number"
    for item in block.items:
        document.add_paragraph(item.text, style=style if item.level == 0 else f"{style} 2")


def add_table(document: Document, block: Block) -> None:
    """Append a ruled table with a bold header row."""
    table = document.add_table(rows=len(block.rows), cols=len(block.rows[0]), style="Table Grid")
    for table_row, cells in zip(table.rows, block.rows, strict=True):
        for cell, text in zip(table_row.cells, cells, strict=True):
            cell.text = text
    for cell in table.rows[0].cells:
        cell.paragraphs[0].runs[0].bold = True

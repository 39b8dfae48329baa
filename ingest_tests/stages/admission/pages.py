"""Documents in short notation: `# heading`, `- list item`, `[link]`, `| cell |`, four spaces for code."""

import re
from pathlib import Path
from textwrap import dedent

from ingest_assets.settings.admission import AdmissionOptions
from ingest_assets.stages.admission.document_text import Block, DocumentText
from ingest_assets.stages.admission.facts import Facts

DEFAULTS = AdmissionOptions()
LIMITS = DEFAULTS.structure
EXAMPLES = Path(__file__).parent / "examples"
_LINK = re.compile(r"\[([^\[\]]+)\]")


def page(text: str, *, mime: str = "text/html", title: str | None = None, pages: int = 0) -> DocumentText:
    """A document with one block per line."""
    blocks = tuple(_block(line) for line in dedent(text).strip("\n").split("\n") if line.strip())
    first = next((block.text for block in blocks if block.label == "section_header"), None)
    return DocumentText(blocks, title=title or first, mime=mime, pages=pages)


def plain(text: str) -> DocumentText:
    """A document of one block with this text; brackets have no meaning."""
    return DocumentText((Block(text),), mime="text/plain")


def facts(document: DocumentText | str) -> Facts:
    """The facts about a document, for the rules."""
    return Facts(page(document) if isinstance(document, str) else document)


def examples(reason: str, verdict: str) -> list[DocumentText]:
    """Read a file's example pages; each is below a line with `%% reject` or `%% keep` and the media type."""
    parts = re.split(
        r"^%% (.*)\n", (EXAMPLES / f"{reason}.txt").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    headed = zip(parts[1::2], parts[2::2], strict=True)
    return [
        page(text, mime=[*head.split(), "text/html"][1])
        for head, text in headed
        if head.split()[0] == verdict
    ]


def _block(line: str) -> Block:
    if line.startswith("    "):
        return Block(line[4:], "code")
    if line.startswith("|"):
        return Block("\t".join(cell.strip() for cell in line.strip("| ").split("|")), "table")
    label = {"#": "section_header", "-": "list_item"}.get(line.split(" ")[0], "text")
    text = line if label == "text" else line[2:]
    return Block(_LINK.sub(r"\1", text), label, tuple(_LINK.findall(text)))

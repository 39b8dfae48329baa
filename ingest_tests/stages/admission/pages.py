"""Readings of a few signs: `# heading`, `- list item`, `[link]`, `| cell | cell |`, four spaces for code."""

import re
from pathlib import Path
from textwrap import dedent

from ingest_assets.settings.admission import AdmissionOptions
from ingest_assets.stages.admission.facts import Facts
from ingest_assets.stages.admission.reading import Block, Reading

DEFAULTS = AdmissionOptions()
LIMITS = DEFAULTS.structure
EXAMPLES = Path(__file__).parent / "examples"
_LINK = re.compile(r"\[([^\[\]]+)\]")


def page(text: str, *, mime: str = "text/html", title: str | None = None, pages: int = 0) -> Reading:
    """A document with one block a line."""
    blocks = tuple(_block(line) for line in dedent(text).strip("\n").split("\n") if line.strip())
    first = next((block.text for block in blocks if block.label == "section_header"), None)
    return Reading(blocks, title=title or first, mime=mime, pages=pages)


def plain(text: str) -> Reading:
    """A document of one block that says just that; brackets mean nothing."""
    return Reading((Block(text),), mime="text/plain")


def facts(reading: Reading | str) -> Facts:
    """What the rules ask."""
    return Facts(page(reading) if isinstance(reading, str) else reading)


def examples(reason: str, verdict: str) -> list[Reading]:
    """The pages of a file of examples, each under a line `%% reject` or `%% keep` and its media type."""
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

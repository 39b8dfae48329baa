"""Blocks as reportlab flowables: the styles, numbering and tables that both typeset PDFs share."""

from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from reportlab.lib import colors
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import Flowable, KeepTogether, ListFlowable, ListItem, Paragraph, Table, TableStyle

from ingest_tests.sample_builders.markup import Block

GRID = [
    ("GRID", (0, 0), (-1, -1), 0.6, colors.black),
    ("BACKGROUND", (0, 0), (-1, 0), colors.HexColor("#e8e2cf")),
    ("VALIGN", (0, 0), (-1, -1), "TOP"),
    ("TOPPADDING", (0, 0), (-1, -1), 2),
    ("BOTTOMPADDING", (0, 0), (-1, -1), 3),
]


@dataclass
class Typesetter:
    """Turns blocks into flowables and keeps count of sections, tables and figures."""

    body_points: float
    width_points: float
    column_shares: tuple[float, ...]
    numbered: bool = False
    counts: dict[str, int] = field(default_factory=lambda: {"section": 0, "sub": 0, "table": 0, "figure": 0})

    def style(self, name: str, scale: float = 1.0, *, bold: bool = False, **options: float) -> ParagraphStyle:
        """A Helvetica style sized against the body text."""
        size = self.body_points * scale
        font = "Helvetica-Bold" if bold else "Helvetica"
        return ParagraphStyle(name, fontName=font, fontSize=size, leading=size * 1.35, **options)

    def body(self) -> ParagraphStyle:
        """The style of running text."""
        return self.style("body", spaceAfter=self.body_points * 0.6)

    def flow(self, blocks: list[Block], figure: Flowable | None = None) -> list[Flowable]:
        """All blocks in order; a table is kept together with the caption that follows it."""
        story: list[Flowable] = []
        for block in blocks:
            if block.kind == "caption":
                story.append(KeepTogether([story.pop(), self.caption("table", block.text)]))
            elif block.kind == "figure" and figure is not None:
                story.append(KeepTogether([figure, self.caption("figure", block.text)]))
            else:
                story.append(self.draw(block))
        return story

    def draw(self, block: Block) -> Flowable:
        """One block that stands alone."""
        if block.kind == "title":
            return Paragraph(escape(block.text), self.style("title", 1.9, bold=True, spaceAfter=6))
        if block.kind in ("heading", "subheading"):
            return self.heading(block)
        if block.kind in ("bullets", "numbers"):
            return self.listing(block)
        if block.kind == "table":
            return self.table(block)
        return Paragraph(escape(block.text), self.body())

    def heading(self, block: Block) -> Paragraph:
        """A heading that stays with the next block, numbered 1, 1.1 where asked for."""
        top = block.kind == "heading"
        self.counts["section"] += top
        self.counts["sub"] = 0 if top else self.counts["sub"] + 1
        number = f"{self.counts['section']}" + ("" if top else f".{self.counts['sub']}")
        text = f"{number} {block.text}" if self.numbered else block.text
        style = self.style(
            block.kind, 1.35 if top else 1.12, bold=True, spaceBefore=8, spaceAfter=4, keepWithNext=1
        )
        return Paragraph(escape(text), style)

    def listing(self, block: Block) -> ListFlowable:
        """A bulleted or numbered list."""
        style = self.style("item", spaceAfter=1.5)
        lines = [ListItem(Paragraph(escape(item.text), style)) for item in block.items]
        marker = (
            {"bulletType": "bullet", "start": "•"}
            if block.kind == "bullets"
            else {"bulletType": "1", "bulletFormat": "%s."}
        )
        size = self.body_points
        return ListFlowable(lines, leftIndent=14, bulletFontSize=size, spaceAfter=size * 0.6, **marker)

    def table(self, block: Block) -> Table:
        """A ruled table over the whole width, its cells wrapped."""
        head, cell = self.style("head", 0.9, bold=True), self.style("cell", 0.9)
        rows = [
            [Paragraph(escape(text), head if index == 0 else cell) for text in row]
            for index, row in enumerate(block.rows)
        ]
        widths = [share * self.width_points for share in self.column_shares]
        return Table(
            rows, colWidths=widths, style=TableStyle(GRID), repeatRows=1, spaceBefore=4, spaceAfter=2
        )

    def caption(self, kind: str, text: str) -> Paragraph:
        """A numbered caption, for example `Table 1. ...`."""
        self.counts[kind] += 1
        style = self.style("caption", 0.9, spaceBefore=2, spaceAfter=9, textColor=colors.HexColor("#333333"))
        return Paragraph(f"<b>{kind.capitalize()} {self.counts[kind]}.</b> {escape(text)}", style)

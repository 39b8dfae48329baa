"""PDFs for the tests, drawn with ReportLab, with layouts of books, papers and reports."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

WIDTH, HEIGHT = 595.0, 842.0
_TEXT = (
    "colonies need stores to live through the winter and keepers weigh every hive in autumn before the first "
    "frost comes over the hills while bees cluster around their queen and eat the honey that summer gave them"
)
WORDS = _TEXT.split()


class Sheet:
    """One page; positions are measured from its top left corner."""

    def __init__(self, canvas: Any) -> None:
        self.canvas = canvas

    def text(self, left: float, top: float, text: str, font: str = "Times-Roman", size: float = 10) -> None:
        self.canvas.setFont(font, size)
        self.canvas.drawString(left, HEIGHT - top - size * 0.75, text)

    def prose(self, left: float, top: float, width: float, lines: int, seed: int = 0) -> float:
        """Draw lines of justified words, the last one not justified; return the position below them."""
        from reportlab.pdfbase.pdfmetrics import stringWidth

        word = seed
        for number in range(lines):
            words: list[str] = []
            while stringWidth(" ".join([*words, WORDS[word % len(WORDS)]]), "Times-Roman", 10) < width:
                words.append(WORDS[word % len(WORDS)])
                word += 1
            text = " ".join(words)
            room = width - stringWidth(text, "Times-Roman", 10)
            self.canvas.setFont("Times-Roman", 10)
            spacing = 0 if number == lines - 1 else room / max(1, len(words) - 1)
            line = self.canvas.beginText(left, HEIGHT - top - 12 * number - 8)
            line.setWordSpace(spacing)
            line.textOut(text)
            self.canvas.drawText(line)
        return top + 12 * lines

    def rule(self, left: float, top: float, right: float, bottom: float) -> None:
        self.canvas.setLineWidth(0.5)
        self.canvas.line(left, HEIGHT - top, right, HEIGHT - bottom)

    def disc(self, left: float, top: float, size: float) -> None:
        self.canvas.circle(left + size / 2, HEIGHT - top - size / 2, size / 2, fill=1)

    def turned(self, left: float, top: float, text: str, size: float = 10) -> None:
        """Draw text that runs from bottom to top."""
        self.canvas.saveState()
        self.canvas.translate(left, HEIGHT - top)
        self.canvas.rotate(90)
        self.canvas.setFont("Times-Roman", size)
        self.canvas.drawString(0, 0, text)
        self.canvas.restoreState()


def paper(*pages: Callable[[Sheet], object]) -> bytes:
    """A PDF with one page per function, which draws it."""
    from reportlab.pdfgen.canvas import Canvas

    out = BytesIO()
    canvas = Canvas(out, pagesize=(WIDTH, HEIGHT), invariant=1)
    for draw in pages:
        draw(Sheet(canvas))
        canvas.showPage()
    canvas.save()
    return out.getvalue()

"""Typeset PDF samples: the handbook of several pages and the two-column report with a chart."""

from collections.abc import Callable
from pathlib import Path

from reportlab.graphics.charts.barcharts import VerticalBarChart
from reportlab.graphics.shapes import Drawing, Line, String
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.units import cm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, FrameBreak, NextPageTemplate, PageTemplate

from ingest_tests.sample_builders.markup import AUTHOR, read_blocks
from ingest_tests.sample_builders.pdf_blocks import Typesetter

WIDTH, HEIGHT = A4
MARGIN = 2.0 * cm
GUTTER = 0.8 * cm
TITLE_HEIGHT = 2.9 * cm
TEXT_WIDTH = WIDTH - 2 * MARGIN
TEXT_HEIGHT = HEIGHT - 4.4 * cm
COLUMN_WIDTH = (TEXT_WIDTH - GUTTER) / 2
MOISTURE_BY_CAPPING = {"below 50 %": 20.6, "50 to 74 %": 19.4, "75 to 89 %": 18.3, "90 % or more": 17.4}
SAFE_MOISTURE = 18.0
AXIS = (16.0, 21.0)


def build_all(folder: Path) -> list[Path]:
    """Both typeset PDFs, written into the folder."""
    return [
        build_handbook(folder / "apiary-handbook.pdf"),
        build_report(folder / "capping-and-moisture-trial.pdf"),
    ]


def build_handbook(path: Path) -> Path:
    """Numbered sections on single-column pages, with a running header and page numbers."""
    document = open_document(path, "Apiary handbook")
    frame = Frame(MARGIN, 2.2 * cm, TEXT_WIDTH, TEXT_HEIGHT, *[0] * 4)
    document.addPageTemplates(
        PageTemplate("page", [frame], onPage=furniture("Apiary handbook, fourth edition"))
    )
    setter = Typesetter(12.5, TEXT_WIDTH, column_shares=(0.2, 0.46, 0.17, 0.17), numbered=True)
    document.build(setter.flow(read_blocks("apiary-handbook.md")))
    return path


def build_report(path: Path) -> Path:
    """A title across the page, then two columns with a ruled table and a vector chart."""
    document = open_document(path, "Moisture of city honey at extraction")
    page = furniture("Honey group report no. 7, September 2024")
    title = Frame(MARGIN, 2.2 * cm + TEXT_HEIGHT - TITLE_HEIGHT, TEXT_WIDTH, TITLE_HEIGHT, *[0] * 4)
    first = PageTemplate("first", [title, *columns(TEXT_HEIGHT - TITLE_HEIGHT)], onPage=page)
    document.addPageTemplates([first, PageTemplate("later", columns(TEXT_HEIGHT), onPage=page)])
    setter = Typesetter(9.2, COLUMN_WIDTH, column_shares=(0.31, 0.18, 0.2, 0.31))
    story = setter.flow(read_blocks("capping-and-moisture-trial.md"), figure=moisture_chart())
    document.build([NextPageTemplate("later"), *story[:2], FrameBreak(), *story[2:]])
    return path


def open_document(path: Path, title: str) -> BaseDocTemplate:
    """An empty A4 document whose bytes do not depend on the clock."""
    return BaseDocTemplate(str(path), pagesize=A4, title=title, author=AUTHOR, invariant=1, lang="en")


def columns(height: float) -> list[Frame]:
    """Two columns of this height above the page foot."""
    lefts = (MARGIN, MARGIN + COLUMN_WIDTH + GUTTER)
    return [Frame(left, 2.2 * cm, COLUMN_WIDTH, height, *[0] * 4) for left in lefts]


def furniture(header: str) -> Callable[[Canvas, BaseDocTemplate], None]:
    """A page callback that draws the running header and the page number."""

    def draw(canvas: Canvas, document: BaseDocTemplate) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.setFillColor(colors.HexColor("#555555"))
        canvas.drawString(MARGIN, HEIGHT - 1.5 * cm, AUTHOR)
        canvas.drawRightString(WIDTH - MARGIN, HEIGHT - 1.5 * cm, header)
        canvas.line(MARGIN, HEIGHT - 1.65 * cm, WIDTH - MARGIN, HEIGHT - 1.65 * cm)
        canvas.drawCentredString(WIDTH / 2, 1.2 * cm, f"Page {document.page}")

    return draw


def moisture_chart() -> Flowable:
    """Bars of mean moisture by class of capping, with the safe level as a dashed line."""
    drawing = Drawing(COLUMN_WIDTH, 150)
    chart = VerticalBarChart()
    chart.x, chart.y, chart.width, chart.height = 34, 30, COLUMN_WIDTH - 44, 105
    chart.data = [tuple(MOISTURE_BY_CAPPING.values())]
    chart.categoryAxis.categoryNames = list(MOISTURE_BY_CAPPING)
    chart.valueAxis.valueMin, chart.valueAxis.valueMax = AXIS
    chart.valueAxis.valueStep = 1
    chart.bars[0].fillColor = colors.HexColor("#d9a520")
    chart.barLabelFormat, chart.barLabels.nudge = "%.1f", 7
    for labels in (chart.categoryAxis.labels, chart.valueAxis.labels, chart.barLabels):
        labels.fontName, labels.fontSize = "Helvetica", 7.5
    drawing.add(chart)
    drawing.add(safe_line(chart))
    drawing.add(String(0, 140, "Moisture, per cent", fontName="Helvetica", fontSize=7.5))
    drawing.add(String(COLUMN_WIDTH / 2, 4, "Share of capped cells", fontName="Helvetica", fontSize=7.5))
    return drawing


def safe_line(chart: VerticalBarChart) -> Line:
    """The dashed line at the level below which fermentation is rare."""
    low, high = AXIS
    height = chart.y + chart.height * (SAFE_MOISTURE - low) / (high - low)
    dash = [3, 2]
    return Line(chart.x, height, chart.x + chart.width, height, strokeDashArray=dash, strokeColor=colors.red)

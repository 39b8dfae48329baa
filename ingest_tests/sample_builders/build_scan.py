"""Awkward PDF samples: a scanned letter without a text layer and a report cut off in the middle."""

import random
from io import BytesIO
from pathlib import Path

import pypdfium2
from PIL import Image
from reportlab import rl_config
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from ingest_assets.samples import BROKEN_SAMPLE
from ingest_tests.sample_builders.markup import PROSE

WIDTH, HEIGHT = A4
SCAN_DPI = 200
SCAN_TILT_DEGREES = 0.5
SCAN_NOISE_SHARE = 0.06
SCAN_JPEG_QUALITY = 40
PAPER_GREY = 246
KEPT_SHARE = 0.5
DAMAGED_LINES = [
    f"Frame {number}: brood on both sides, no sunken cappings, no smell." for number in range(1, 46)
]


def build_all(folder: Path) -> list[Path]:
    """The scan and the damaged report, written into the folder."""
    return [build_scan(folder / "library-roof-letter-scan.pdf"), build_damaged(folder / BROKEN_SAMPLE)]


def build_scan(path: Path) -> Path:
    """One page that is only a JPEG of a typed letter: grey, noisy, tilted by less than a degree."""
    letter = (PROSE / "library-roof-letter.txt").read_text(encoding="utf-8")
    jpeg = BytesIO()
    scanned(typed_page(letter.splitlines())).save(jpeg, "JPEG", quality=SCAN_JPEG_QUALITY)
    rl_config.useA85 = 0  # binary streams: a quarter smaller than ASCII
    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    canvas.setTitle("Scan 2024-02-12")
    canvas.drawImage(ImageReader(BytesIO(jpeg.getvalue())), 0, 0, WIDTH, HEIGHT)
    canvas.save()
    return path


def typed_page(lines: list[str]) -> bytes:
    """A one-page PDF with these lines in a typewriter face."""
    buffer = BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    text = canvas.beginText(72, HEIGHT - 80)
    text.setFont("Courier", 11.5, leading=14.6)
    text.textLines(lines)
    canvas.drawText(text)
    canvas.save()
    return buffer.getvalue()


def scanned(page: bytes) -> Image.Image:
    """The page as a flatbed scanner would see it; the noise is seeded and thus the same each time."""
    with pypdfium2.PdfDocument(page) as document:
        clean = document[0].render(scale=SCAN_DPI / 72, grayscale=True).to_pil().convert("L")
    paper = clean.point(lambda grey: 30 + grey * (PAPER_GREY - 30) // 255)
    tilted = paper.rotate(SCAN_TILT_DEGREES, Image.Resampling.BICUBIC, fillcolor=PAPER_GREY)
    noise = Image.frombytes("L", tilted.size, random.Random(2024).randbytes(tilted.width * tilted.height))
    return Image.blend(tilted, noise, SCAN_NOISE_SHARE)


def build_damaged(path: Path) -> Path:
    """The first half of a PDF, as a broken upload leaves it: no page tree, no xref, no trailer."""
    whole = photographed_report()
    path.write_bytes(whole[: int(len(whole) * KEPT_SHARE)])
    return path


def photographed_report() -> bytes:
    """A sound inspection report; its photograph comes first in the file and takes up most of it."""
    photograph = Image.frombytes("L", (120, 120), random.Random(7).randbytes(120 * 120))
    buffer = BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.drawImage(ImageReader(photograph), 400, 640, 120, 120)
    canvas.drawString(72, 770, "Inspection report, hive D4, 21 July 2024")
    text = canvas.beginText(72, 740)
    text.textLines(DAMAGED_LINES)
    canvas.drawText(text)
    canvas.save()
    return buffer.getvalue()

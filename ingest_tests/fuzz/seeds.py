"""One small, rich document of every supported format: the input of mutations."""

import re
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from ingest_tests.fuzz.markup_seeds import (
    ADOC,
    BOXNOTE,
    CSV,
    EML,
    HTML,
    JATS,
    MARKDOWN,
    MHTML,
    PATENT,
    TEX,
    VTT,
    XHTML,
)
from ingest_tests.parsing import documents
from ingest_tests.parsing.hostile import archives, ole, pdfs

_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
LINES = [
    (72, 760, 20, "Winter feeding"),
    (72, 720, 11, "Colonies need about fifteen kilograms of stores to live through the winter."),
    *((x, 640 - 20 * row, 11, f"{name}{row}") for row in range(4) for x, name in ((80, "Hive"), (220, "kg"))),
]


def seeds() -> dict[str, tuple[bytes, ...]]:
    """Documents by suffix."""
    return {suffix: tuple(make() for make in makers) for suffix, makers in _MAKERS.items()}


def _text_pdf() -> bytes:
    return documents.pdf([LINES, LINES[:2]])


def _packed_pdf() -> bytes:
    picture = b"/Type/XObject/Subtype/Image/Width 4/Height 4/ColorSpace/DeviceGray/BitsPerComponent 8"
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 99 99]/Resources<</Font<</F1 4 0 R>>>>/Filter/FlateDecode"
    page = (
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Rotate 90/Contents[5 0 R 5 0 R]/Annots[8 0 R]"
        b"/Resources<</Font<</F1 4 0 R>>/XObject<</Im 6 0 R/Fm 7 0 R>>>>>>"
    )
    return pdfs.one_page(
        pdfs.stream(
            zlib.compress(pdfs.TEXT + b" q 90 0 0 90 50 50 cm /Im Do Q /Fm Do 10 10 m 90 10 l S"),
            b"/Filter/FlateDecode",
        ),
        pdfs.stream(zlib.compress(bytes(range(16))), picture + b"/Filter/FlateDecode"),
        pdfs.stream(zlib.compress(b"BT /F1 9 Tf 10 10 Td [(For)-20(m)] TJ ET"), form),
        b"<</Type/Annot/Subtype/Link/Rect[70 690 200 710]/A<</S/URI/URI(http://127.0.0.1/)>>>>",
        page=page,
    )


def _scan() -> bytes:
    with TemporaryDirectory() as folder:
        return documents.scan(Path(folder) / "a.pdf", "Honey bees").read_bytes()


def _docx() -> bytes:
    with TemporaryDirectory() as folder:
        path = documents.docx(
            Path(folder) / "a.docx", "Minutes", ["The roof is let.", "Bees"], [["Hive", "kg"], ["A1", "31"]]
        )
        return _frozen(path.read_bytes())


def _pptx() -> bytes:
    import pptx

    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Swarms"
    slide.placeholders[1].text = "They leave in May."
    table = slide.shapes.add_table(2, 2, 0, 0, 900_000, 900_000).table
    table.cell(0, 0).text = "Hive"
    return _frozen(_saved(deck.save))


def _xlsx() -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for row in (("Hive", "kg"), ("A1", 31), ("B2", "=SUM(B2:B2)")):
        book.active.append(row)
    book.active.merge_cells("D1:E2")
    book.create_sheet("Second").append(("x", True, 1.5))
    return _frozen(_saved(book.save))


def _saved(save: Callable[[BytesIO], object]) -> bytes:
    made = BytesIO()
    save(made)
    return made.getvalue()


def _frozen(content: bytes) -> bytes:
    """The same Office file at any time of creation."""
    return archives.archive(
        {
            name: _TIME.sub(b"2024-05-01T00:00:00Z", part)
            for name, part in archives.members_of(content).items()
        }
    )


def _odt() -> bytes:
    body = "<text:h text:outline-level='1'>Hives</text:h><text:p>Bees and trees</text:p>"
    return archives.odf("text", _odf_content(f"<office:text>{body}</office:text>"))


def _ods() -> bytes:
    cell = "<table:table-cell office:value-type='string'><text:p>A1</text:p></table:table-cell>"
    table = f"<table:table table:name='S'><table:table-row>{cell * 2}</table:table-row></table:table>"
    return archives.odf("spreadsheet", _odf_content(f"<office:spreadsheet>{table}</office:spreadsheet>"))


def _odp() -> bytes:
    frame = "<draw:frame svg:x='1cm' svg:y='1cm' svg:width='9cm' svg:height='2cm'><draw:text-box>"
    frame += "<text:p>Bees and trees</text:p></draw:text-box></draw:frame>"
    page = f"<draw:page draw:name='Swarms'>{frame}</draw:page>"
    return archives.odf("presentation", _odf_content(f"<office:presentation>{page}</office:presentation>"))


def _odf_content(body: str) -> str:
    spaces = {"office": "office", "text": "text", "table": "table", "style": "style"}
    spaces |= {"draw": "drawing", "svg": "svg-compatible", "presentation": "presentation"}
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"' for name, space in spaces.items()
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {names} office:version="1.2">'
        f"<office:body>{body}</office:body></office:document-content>"
    )


def _docling_json() -> bytes:
    from docling_core.types.doc import DocItemLabel, DoclingDocument

    document = DoclingDocument(name="hives")
    document.add_title("Hives")
    document.add_text(DocItemLabel.TEXT, "Fifteen kilograms")
    return document.model_dump_json().encode()


def _picture(kind: str) -> Callable[[], bytes]:
    def made() -> bytes:
        from PIL import Image, ImageDraw

        picture = Image.new("RGB", (160, 60), "white")
        ImageDraw.Draw(picture).text((10, 20), "Honey bees", fill="black", font_size=22)
        more = {"save_all": True, "append_images": [picture]} if kind in ("TIFF", "GIF") else {}
        return _saved(lambda target: picture.save(target, kind, **more))

    return made


_MAKERS: dict[str, tuple[Callable[[], bytes], ...]] = {
    "pdf": (_text_pdf, _packed_pdf, _scan, pdfs.with_embedded_file, pdfs.with_hidden_javascript),
    "docx": (_docx,),
    "pptx": (_pptx,),
    "xlsx": (_xlsx,),
    "html": (HTML.encode, lambda: HTML.encode("utf-16")),
    "xhtml": (XHTML.encode,),
    "md": (MARKDOWN.encode,),
    "txt": (MARKDOWN.encode, lambda: MARKDOWN.encode("cp1252", "replace")),
    "csv": (CSV.encode,),
    "adoc": (ADOC.encode,),
    "vtt": (VTT.encode,),
    "tex": (TEX.encode,),
    "eml": (EML.encode,),
    "nxml": (JATS.encode,),
    "xml": (PATENT.encode,),
    "mhtml": (MHTML.encode,),
    "boxnote": (BOXNOTE.encode,),
    "json": (_docling_json,),
    "epub": (lambda: archives.epub(XHTML),),
    "odt": (_odt,),
    "ods": (_ods,),
    "odp": (_odp,),
    "msg": (lambda: ole.outlook("Hives", "Fifteen kilograms of stores"),),
    "png": (_picture("PNG"),),
    "jpg": (_picture("JPEG"),),
    "tiff": (_picture("TIFF"),),
    "gif": (_picture("GIF"),),
    "bmp": (_picture("BMP"),),
    "webp": (_picture("WEBP"),),
}

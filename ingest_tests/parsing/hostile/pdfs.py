"""PDFs with false sizes, loops, bombs or attachments."""

import zlib

from ingest_tests.parsing.documents import pdf_file
from ingest_tests.parsing.hostile.deflated import zipped

CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
TEXT = b"BT /F1 12 Tf 72 700 Td (Bees and trees) Tj ET"


def stream(content: bytes, dictionary: bytes = b"") -> bytes:
    """A stream object's body."""
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (dictionary, len(content), content)


def _page(
    contents: bytes = b"5 0 R", box: bytes = b"0 0 595 842", more: bytes = b"", resources: bytes = b""
) -> bytes:
    return b"<</Type/Page/Parent 2 0 R/MediaBox[%s]/Resources<</Font<</F1 4 0 R>>%s>>/Contents %s%s>>" % (
        box,
        resources,
        contents,
        more,
    )


def one_page(
    content: bytes | None = None, *more: bytes, catalog: bytes = CATALOG, page: bytes | None = None
) -> bytes:
    """A PDF with one page; objects from number 6 on are `more`."""
    pages = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
    return pdf_file([catalog, pages, page or _page(), FONT, content or stream(TEXT), *more])


def flate_bomb(mebibytes: int = 4096) -> bytes:
    """A content stream of spaces."""
    return one_page(stream(zipped(mebibytes), b"/Filter/FlateDecode"))


def twice_flate_bomb(mebibytes: int = 4096) -> bytes:
    """The same, compressed twice: some kilobytes."""
    content = stream(zlib.compress(zipped(mebibytes), 9), b"/Filter[/FlateDecode/FlateDecode]")
    return one_page(content)


def many_pages(count: int) -> bytes:
    """This many equal page objects."""
    kids = b" ".join(b"%d 0 R" % (4 + at) for at in range(count))
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 3 0 R>>"
    pages = b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, count)
    return pdf_file([CATALOG, pages, stream(b" "), *[page] * count])


def one_page_many_times(count: int) -> bytes:
    """One page object that is repeated in the page tree."""
    pages = b"<</Type/Pages/Kids[%s]/Count %d>>" % (b"3 0 R " * count, count)
    return pdf_file([CATALOG, pages, _page(), FONT, stream(TEXT)])


def claimed_pages(count: int) -> bytes:
    """One page, and a page tree that declares more."""
    pages = b"<</Type/Pages/Kids[3 0 R]/Count %d>>" % count
    return pdf_file([CATALOG, pages, _page(), FONT, stream(TEXT)])


def page_tree_loop() -> bytes:
    """A page tree with its root as a branch."""
    pages = b"<</Type/Pages/Kids[6 0 R 3 0 R]/Count 2>>"
    branch = b"<</Type/Pages/Parent 2 0 R/Kids[2 0 R 6 0 R]/Count 2>>"
    return pdf_file([CATALOG, pages, _page(), FONT, stream(TEXT), branch])


def giant_page(side: int = 2_000_000) -> bytes:
    """A page of some kilometres."""
    return one_page(page=_page(box=b"0 0 %d %d" % (side, side)))


def giant_picture(side: int = 200_000) -> bytes:
    """An image that declares forty billion pixels."""
    picture = b"/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB/BitsPerComponent 8" % (
        side,
        side,
    )
    return one_page(
        stream(TEXT + b" q 500 0 0 500 0 0 cm /Im Do Q"),
        stream(zipped(64, b"\x00"), picture + b"/Filter/FlateDecode"),
        page=_page(resources=b"/XObject<</Im 6 0 R>>"),
    )


def recursive_form() -> bytes:
    """A form that draws itself."""
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</XObject<</Fm 6 0 R>>>>"
    return one_page(
        stream(TEXT + b" /Fm Do"),
        stream(b"/Fm Do /Fm Do", form),
        page=_page(resources=b"/XObject<</Fm 6 0 R>>"),
    )


def doubling_forms(levels: int = 40) -> bytes:
    """Each form draws the next one twice: two to the power of forty drawings."""
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</XObject<</Fm %d 0 R>>>>"
    forms = [stream(b"/Fm Do /Fm Do", form % (7 + at)) for at in range(levels)]
    forms.append(stream(b"0 0 m", b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]"))
    return one_page(stream(TEXT + b" /Fm Do"), *forms, page=_page(resources=b"/XObject<</Fm 6 0 R>>"))


def nested_arrays(depth: int = 100_000) -> bytes:
    """An object of deeply nested arrays."""
    return one_page(None, b"[" * depth + b"]" * depth, page=_page(more=b"/Annots 6 0 R"))


def with_javascript(name: bytes = b"/JavaScript") -> bytes:
    """A script that runs when a viewer opens the file."""
    action = b"<</Type/Action/S%s/JS(app.alert\\(1\\))>>" % name
    return one_page(None, action, catalog=b"<</Type/Catalog/Pages 2 0 R/OpenAction 6 0 R>>")


def with_hidden_javascript() -> bytes:
    """The same script inside a compressed object stream."""
    inner = b"7 0 <</S/JavaScript/JS(app.alert\\(1\\))>>"
    hidden = stream(zlib.compress(inner), b"/Type/ObjStm/N 1/First 4/Filter/FlateDecode")
    return one_page(None, hidden)


def with_embedded_file() -> bytes:
    """An attachment."""
    catalog = b"<</Type/Catalog/Pages 2 0 R/Names<</EmbeddedFiles<</Names[(evil.exe) 6 0 R]>>>>>>"
    spec = b"<</Type/Filespec/F(evil.exe)/EF<</F 7 0 R>>>>"
    return one_page(None, spec, stream(b"MZ", b"/Type/EmbeddedFile"), catalog=catalog)


def three_pages(second: bytes) -> bytes:
    """Three pages, the second one with this object as its content stream."""
    pages = b"<</Type/Pages/Kids[3 0 R 6 0 R 7 0 R]/Count 3>>"
    last = _page().replace(b"5 0 R", b"5 0 R")
    return pdf_file([CATALOG, pages, _page(), FONT, stream(TEXT), _page(b"8 0 R"), last, second])


def looping_xref() -> bytes:
    """A cross-reference table whose previous one is itself."""
    content = one_page()
    start = content.rindex(b"xref\n0 ", 0, content.rindex(b"startxref"))
    return content.replace(b"trailer<<", b"trailer<</Prev %d" % start)


def object_stream_bomb(mebibytes: int = 4096) -> bytes:
    """An object stream that a viewer unpacks before it shows anything."""
    packed = stream(zipped(mebibytes), b"/Type/ObjStm/N 1/First 4/Filter/FlateDecode")
    return one_page(None, packed)


def outline_loop() -> bytes:
    """A table of contents whose entry is its own next, first and last entry."""
    catalog = b"<</Type/Catalog/Pages 2 0 R/Outlines 6 0 R>>"
    entry = b"<</Title(a)/Parent 6 0 R/Next 7 0 R/First 7 0 R/Prev 7 0 R>>"
    return one_page(None, b"<</Type/Outlines/First 7 0 R/Last 7 0 R/Count 1>>", entry, catalog=catalog)


def hex_chain(length: int = 10) -> bytes:
    """Text encoded in hexadecimal digits several times."""
    content = TEXT
    for _ in range(length):
        content = content.hex().encode() + b">"
    return one_page(stream(content, b"/Filter[" + b"/ASCIIHexDecode" * length + b"]"))


def run_length(runs: int = 500_000) -> bytes:
    """Run-length encoded spaces, compressed: some kilobytes for sixty million."""
    return one_page(
        stream(zlib.compress(b"\x81 " * runs + b"\x80", 9), b"/Filter[/FlateDecode/RunLengthDecode]")
    )


def font_bomb(mebibytes: int = 3000) -> bytes:
    """A font that expands beyond the memory."""
    font = b"<</Type/Font/Subtype/TrueType/BaseFont/X/FontDescriptor 7 0 R>>"
    described = b"<</Type/FontDescriptor/FontName/X/Flags 4/FontFile2 8 0 R>>"
    packed = stream(zipped(mebibytes), b"/Filter/FlateDecode")
    return one_page(None, font, described, packed, page=_page(resources=b"/Font<</F2 6 0 R>>"))

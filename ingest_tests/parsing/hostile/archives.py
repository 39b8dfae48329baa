"""Archives that expand beyond a machine's memory."""

import struct
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO

from ingest_tests.parsing.hostile.deflated import deflated

_LOCAL = "<4sHHHHHIIIHH"
_CENTRAL = "<4sHHHHHHIIIHHHHHII"
_END = "<4sHHHHIIH"
DEFLATED, STORED = 8, 0
_MOST = 0xFFFFFFFF


def archive(members: Mapping[str, str | bytes]) -> bytes:
    """An ordinary archive; its bytes do not depend on the clock."""
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            method = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            target.writestr(zipfile.ZipInfo(name), content, method)
    return made.getvalue()


def members_of(content: bytes) -> dict[str, bytes]:
    """The members of an archive by name."""
    with zipfile.ZipFile(BytesIO(content)) as source:
        return {name: source.read(name) for name in source.namelist()}


def forged(members: Mapping[str, tuple[bytes, int]]) -> bytes:
    """An archive of raw deflate streams, each with the size that its directory entry declares."""
    out, directory = bytearray(), bytearray()
    for name, (packed, claimed) in members.items():
        entry = name.encode()
        facts = (0, DEFLATED, 0, 0, zlib.crc32(b""), len(packed), min(claimed, _MOST))
        directory += struct.pack(_CENTRAL, b"PK\x01\x02", 20, 20, *facts, len(entry), 0, 0, 0, 0, 0, len(out))
        directory += entry
        out += struct.pack(_LOCAL, b"PK\x03\x04", 20, *facts, len(entry), 0) + entry + packed
    count = len(members)
    end = struct.pack(_END, b"PK\x05\x06", 0, 0, count, count, len(directory), len(out), 0)
    return bytes(out + directory + end)


def bomb(member: str, mebibytes: int = 2048) -> bytes:
    """One member of this unpacked size, correctly declared."""
    return forged({member: (deflated(mebibytes), mebibytes * 1024 * 1024)})


def lying_bomb(member: str, mebibytes: int = 2048) -> bytes:
    """One member of this unpacked size, declared as a kilobyte."""
    return forged({member: (deflated(mebibytes), 1024)})


def nested_bomb(member: str, inner: str) -> bytes:
    """A bomb in a small archive inside the archive."""
    return archive({member: "<x/>", inner: bomb("xl/worksheets/sheet1.xml")})


def russian_dolls(member: str, depth: int = 40) -> bytes:
    """Archives nested in archives."""
    content = b"x"
    for _ in range(depth):
        content = archive({"next.zip": content})
    return archive({member: "<x/>", "word/embeddings/next.zip": content})


def crowd(member: str, count: int = 100_000) -> bytes:
    """Very many members, all empty."""
    return archive({member: "<x/>"} | {f"word/media/{at}": b"" for at in range(count)})


def overlapping(member: str, count: int = 3000, mebibytes: int = 64) -> bytes:
    """Members that share one stream: declared as a few kilobytes each, large in total."""
    one = forged({member: (deflated(mebibytes), mebibytes * 1024 * 1024)})
    start = one.index(b"PK\x01\x02")
    entry = one[start : one.index(b"PK\x05\x06")]
    end = struct.pack(_END, b"PK\x05\x06", 0, 0, count, count, len(entry) * count, start, 0)
    return one[:start] + entry * count + end


def odf(kind: str, content: str) -> bytes:
    """An OpenDocument file with this content."""
    mime = f"application/vnd.oasis.opendocument.{kind}"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{mime}"/></manifest:manifest>'
    )
    return archive({"mimetype": mime, "content.xml": content, "META-INF/manifest.xml": manifest})


def epub(chapter: str | bytes, **more: str | bytes) -> bytes:
    """A book of one chapter."""
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
        '<rootfile full-path="a.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata/><manifest>'
        '<item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="c"/></spine></package>'
    )
    members: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container,
        "a.opf": package,
        "c.xhtml": chapter,
    }
    return archive(members | more)


def locked(content: bytes) -> bytes:
    """The same archive with its first member marked as encrypted."""
    marked = bytearray(content)
    for header, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        marked[content.index(header) + offset] |= 1
    return bytes(marked)


def locked_odf() -> bytes:
    """An OpenDocument file whose manifest says that its content is encrypted."""
    parts = members_of(odf("text", "?"))
    manifest = parts["META-INF/manifest.xml"].replace(
        b"/>", b"><manifest:encryption-data/></manifest:file-entry>"
    )
    return archive(parts | {"META-INF/manifest.xml": manifest})


def locked_epub() -> bytes:
    """A book whose chapter is encrypted (DRM)."""
    reference = '<enc:CipherData><enc:CipherReference URI="c.xhtml"/></enc:CipherData>'
    return epub("?", **{"META-INF/encryption.xml": f"<encryption xmlns:enc='x'>{reference}</encryption>"})


def far_cell() -> bytes:
    """A workbook with a value in its first and in its very last cell."""
    import openpyxl

    book, made = openpyxl.Workbook(), BytesIO()
    book.active["A1"], book.active["XFD1048576"] = "first", "last"
    book.save(made)
    return made.getvalue()


def wide_dolls(member: str, width: int = 16, depth: int = 5) -> bytes:
    """Archives nested three levels deep, many per level: a small file with a million members in total."""
    content = b"x"
    for _ in range(depth):
        content = archive({f"{at}.zip": content for at in range(width)})
    return archive({member: "<x/>", "word/embeddings/next.zip": content})


def far_odf_cell() -> bytes:
    """One cell that is repeated sixteen thousand million times."""
    cell = "<table:table-cell table:number-columns-repeated='16000' office:value='1'/>"
    row = f"<table:table-row table:number-rows-repeated='1000000'>{cell}</table:table-row>"
    return odf("spreadsheet", f"<office:spreadsheet><table:table>{row}</table:table></office:spreadsheet>")


def wide_odf_gap() -> bytes:
    """One element that stands for two thousand million spaces."""
    return odf("text", "<office:text><text:p>a<text:s text:c='2000000000'/>b</text:p></office:text>")

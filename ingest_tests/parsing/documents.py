"""Tiny handmade documents, so that the tests need neither a corpus nor a PDF library."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

_PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
_FILE_ID = bytes(range(16))

Placed = tuple[float, float, float, str]  # left, bottom, size, text


def pdf(pages: Sequence[Iterable[Placed]], *, password: str | None = None) -> bytes:
    """A PDF whose pages contain these pieces of text; with a password, encrypted (RC4, 40 bit)."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    for at, page in enumerate(pages):
        content = "\n".join(
            f"BT /F1 {size} Tf {x} {y} Td ({text}) Tj ET" for x, y, size, text in page
        ).encode()
        objects += [_page(5 + 2 * at), (content, 5 + 2 * at)]  # type: ignore[list-item]
    return pdf_file(objects, password)


def _page(content: int) -> bytes:
    return (
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>"
        f"/Contents {content} 0 R>>"
    ).encode()


def pdf_file(objects: Sequence[bytes | tuple[bytes, int]], password: str | None = None) -> bytes:
    """A PDF of these objects, numbered from 1; the first is the catalog. A pair with a number is a stream."""
    owner, user, key = _keys(password) if password is not None else (b"", b"", b"")
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    bodies = [_body(entry, key) for entry in objects]
    if key:
        bodies.append(
            b"<</Filter/Standard/V 1/R 2/O<%s>/U<%s>/P -4>>" % (owner.hex().encode(), user.hex().encode())
        )
    for number, body in enumerate(bodies, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    file_id = _FILE_ID.hex().encode()
    encrypt = b"/Encrypt %d 0 R" % len(bodies) if key else b""
    out += b"trailer<</Size %d/Root 1 0 R/ID[<%s><%s>]%s>>\n" % (len(bodies) + 1, file_id, file_id, encrypt)
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


def _body(entry: bytes | tuple[bytes, int], key: bytes) -> bytes:
    if isinstance(entry, bytes):
        return entry
    content, number = entry
    if key:
        salt = number.to_bytes(3, "little") + b"\x00\x00"
        content = _rc4(hashlib.md5(key + salt).digest()[:10], content)
    return b"<</Length %d>>stream\n%s\nendstream" % (len(content), content)


def _keys(password: str) -> tuple[bytes, bytes, bytes]:
    """Owner entry, user entry and file key (PDF 1.4, algorithms 2 to 4)."""
    user_password = (password.encode() + _PADDING)[:32]
    owner_password = (b"owner" + _PADDING)[:32]
    owner = _rc4(hashlib.md5(owner_password).digest()[:5], user_password)
    permissions = (-4 & 0xFFFFFFFF).to_bytes(4, "little")
    key = hashlib.md5(user_password + owner + permissions + _FILE_ID).digest()[:5]
    return owner, _rc4(key, _PADDING), key


def _rc4(key: bytes, content: bytes) -> bytes:
    state = list(range(256))
    at = 0
    for i in range(256):
        at = (at + state[i] + key[i % len(key)]) % 256
        state[i], state[at] = state[at], state[i]
    out, i, at = bytearray(), 0, 0
    for byte in content:
        i = (i + 1) % 256
        at = (at + state[i]) % 256
        state[i], state[at] = state[at], state[i]
        out.append(byte ^ state[(state[i] + state[at]) % 256])
    return bytes(out)


def scan(path: Path, text: str, *, turned: bool = False) -> Path:
    """A PDF whose only page is an image of the text."""
    from PIL import Image, ImageDraw

    picture = Image.new("L", (900, 500), "white")
    ImageDraw.Draw(picture).text((60, 200), text, fill="black", font_size=48)
    if turned:
        picture = picture.rotate(90, expand=True)
    picture.save(path, "PDF", resolution=120)
    return path


def docx(path: Path, title: str, paragraphs: Sequence[str], table: Sequence[Sequence[str]] = ()) -> Path:
    """A Word document with a title, paragraphs and at most one table."""
    import docx as word

    document = word.Document()
    document.add_heading(title, level=0)
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    if table:
        grid = document.add_table(rows=len(table), cols=len(table[0]))
        for row, texts in zip(grid.rows, table, strict=True):
            for cell, text in zip(row.cells, texts, strict=True):
                cell.text = text
    document.save(str(path))
    return path

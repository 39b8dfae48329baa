"""Office files, books and other archives: how much is in them, by their directory, before it is unpacked."""

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

from ingest_assets.model.options import ParsingOptions
from ingest_assets.parsing.errors import CorruptDocument, DecompressionBomb, EmptyDocument, PasswordNeeded
from ingest_assets.parsing.safety.bombs import refuse_bomb
from ingest_assets.parsing.safety.entities import check_entities
from ingest_assets.parsing.safety.repeats import check_repeats
from ingest_assets.parsing.safety.sheets import check_sheet

MAX_ARCHIVE_DEPTH = 4
_HEAD_BYTES = 65536
_DECK = "ppt/presentation.xml"
_ENCRYPTED = 0x1
_MARKUP = (".xml", ".rels", ".opf", ".ncx", ".xhtml", ".html", ".htm", ".svg", ".vml")
_PACKED = (
    *(".zip", ".docx", ".docm", ".xlsx", ".xlsm", ".xlsb", ".pptx", ".pptm"),
    *(".odt", ".ods", ".odp", ".epub"),
)
_ROOT = re.compile(rb"<\x00?[A-Za-z_]")
_DOCTYPE = re.compile(rb"<\x00?!\x00?D\x00?O\x00?C\x00?T\x00?Y\x00?P\x00?E", re.IGNORECASE)
_LOCKED_CHAPTER = re.compile(rb"CipherReference[^>]+URI\s*=\s*[\"'][^\"']+\.x?html?[\"']", re.IGNORECASE)
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, struct.error)
_DAMAGED = "The archive that the document is made of is damaged or truncated; get an intact copy."


def check_archive(content: bytes, options: ParsingOptions) -> tuple[str, ...]:
    """Refuse too many members, too much in them, archives in archives without end, and what is locked."""
    return _Walk(options).check(content, depth=1)


@contextmanager
def damage_named() -> Iterator[None]:
    """Whatever an archive raises when its bytes are wrong, in our words."""
    try:
        yield
    except _UNREADABLE as error:
        raise CorruptDocument(_DAMAGED) from error


def refuse_no_slides(content: bytes) -> None:
    """A presentation that nobody has put a slide into is whole, and has nothing to read."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        names = archive.namelist()
        deck = archive.read(_DECK) if _DECK in names else b""
    is_empty = b"presentation>" in deck and b"sldId " not in deck
    if is_empty and not any(name.startswith("ppt/slides/") for name in names):
        raise EmptyDocument("The presentation has no slides; add some or remove it.")


class _Walk:
    """Counts what all archives of a document hold together."""

    def __init__(self, options: ParsingOptions) -> None:
        self._options = options
        self._members = self._packed = self._unpacked = 0

    def check(self, content: bytes, depth: int) -> tuple[str, ...]:
        if depth > MAX_ARCHIVE_DEPTH:
            raise DecompressionBomb(
                f"The document holds archives in archives, more than {MAX_ARCHIVE_DEPTH} deep; "
                "unpack what you need of it."
            )
        try:
            with zipfile.ZipFile(BytesIO(content)) as archive:
                self._count(archive.infolist(), len(content))
                return self._look_inside(archive, depth)
        except _UNREADABLE as error:
            if depth > 1:  # an attachment that is none is nobody's concern
                return ()
            raise CorruptDocument(_DAMAGED) from error

    def _count(self, members: list[zipfile.ZipInfo], packed_bytes: int) -> None:
        self._members += len(members)
        if self._members > self._options.max_archive_members:
            raise DecompressionBomb(
                f"The document is an archive of {self._members} members, more than the "
                f"{self._options.max_archive_members} allowed; if you trust its source, raise "
                "parsing.max_archive_members."
            )
        self._unpacked += sum(member.file_size for member in members)
        self._packed = self._packed or packed_bytes
        refuse_bomb("The document is an archive that", self._packed, self._unpacked, self._options)

    def _look_inside(self, archive: zipfile.ZipFile, depth: int) -> tuple[str, ...]:
        warnings: dict[str, None] = {}
        for member in archive.infolist():
            name = member.filename.lower()
            if member.flag_bits & _ENCRYPTED:
                raise PasswordNeeded("The document is encrypted; save a copy without a password.")
            if name.endswith(_MARKUP):
                warnings |= dict.fromkeys(self._check_markup(archive, member))
            elif name.endswith(_PACKED):
                warnings |= dict.fromkeys(self.check(archive.read(member), depth + 1))
        return tuple(warnings)

    def _check_markup(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[str, ...]:
        with archive.open(member) as stream:
            head = stream.read(_HEAD_BYTES)
            if member.filename == "META-INF/manifest.xml" and b"encryption-data" in head:
                raise PasswordNeeded("The document is encrypted; save a copy without a password.")
            if member.filename == "META-INF/encryption.xml" and _LOCKED_CHAPTER.search(head):
                raise PasswordNeeded("The book is locked by its seller; get a copy without such a lock.")
            # a DOCTYPE comes before the first element; a head without an element may hide one behind comments
            if member.filename.startswith("xl/worksheets/"):
                head += stream.read()
                check_sheet(head, self._options)
            elif member.filename == "content.xml":
                head += stream.read()
                check_repeats(head, self._options)
            if _DOCTYPE.search(head) or not _ROOT.search(head):
                return check_entities("A part of the document", head + stream.read(), self._options)
        return ()

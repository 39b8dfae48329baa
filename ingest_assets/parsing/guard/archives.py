"""Checks of Office files, books and other archives, mostly by their directory, before they are unpacked."""

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

from ingest_assets.parsing.errors import CorruptDocument, DecompressionBomb, EmptyDocument, PasswordNeeded
from ingest_assets.parsing.guard.limits import check_table_size, check_unpacked_size
from ingest_assets.parsing.guard.markup import check_entities
from ingest_assets.settings.parsing import ParsingOptions

# Spreadsheets: a reader visits every cell up to the outermost one, however few have a value.


CELL_BYTES = 128  # memory for an empty cell
_CELL = re.compile(rb"<(?:\w+:)?c\b[^<>]*?\br=\"([A-Za-z]{1,3})(\d{1,7})\"")


def check_sheet(content: bytes, options: ParsingOptions) -> None:
    """Refuse a sheet whose cells span too large an area or are too many."""
    left = top = 1 << 30
    right = bottom = count = 0
    for match in _CELL.finditer(content):
        column, row = _column(match[1]), int(match[2])
        left, right = min(left, column), max(right, column)
        top, bottom = min(top, row), max(bottom, row)
        count += 1
    cells = max(0, right - left + 1) * max(0, bottom - top + 1)
    check_unpacked_size("A sheet of the workbook", cells * CELL_BYTES, cells * CELL_BYTES, options)
    check_table_size("A sheet of the workbook", count)


def _column(name: bytes) -> int:
    number = 0
    for letter in name.upper():
        number = number * 26 + letter - 64
    return number


# OpenDocument: one cell or one space can be declared as repeated a million times.


_ODF_PART = re.compile(
    rb"<(?:\w+:)?(?:(table)(?=[\s>])|(table-row)\b([^<>]*)|(?:covered-)?table-cell\b([^<>]*?)(/?))>|"
    rb"</(?:\w+:)?table-row>"
)
_ROWS = re.compile(rb"\bnumber-rows-repeated=[\"'](\d{1,9})")
_SPACES = re.compile(rb"<(?:\w+:)?s\s[^<>]*?\bc=[\"'](\d{1,12})")
_COLUMNS = re.compile(rb"\bnumber-columns-repeated=[\"'](\d{1,9})")


def check_repeats(content: bytes, options: ParsingOptions) -> None:
    """Refuse tables and runs of spaces that are too large once their repeats are expanded."""
    spaces = sum(int(count) for count in _SPACES.findall(content))
    check_unpacked_size("The text", len(content), spaces, options)
    for rows, columns in _table_sizes(content):
        cells = rows * columns
        check_unpacked_size("A table of the document", cells * CELL_BYTES, cells * CELL_BYTES, options)
        check_table_size("A table of the document", cells)


def _table_sizes(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield rows and columns of each table up to its last cell with content; a reader stops there."""
    rows = columns = passed_rows = passed_columns = row_columns = 0
    row_repeats = 1
    for part in _ODF_PART.finditer(content):
        if part[1]:
            yield rows, columns
            rows = columns = passed_rows = passed_columns = row_columns = 0
            row_repeats = 1
        elif part[2]:
            row_repeats, passed_columns, row_columns = _repeated(_ROWS, part[3]), 0, 0
        elif part[4] is not None:
            passed_columns += _repeated(_COLUMNS, part[4])
            if not part[5] or b"value" in part[4]:
                row_columns = passed_columns
        else:
            passed_rows += row_repeats
            if row_columns:
                rows, columns = passed_rows, max(columns, row_columns)
    yield rows, columns


def _repeated(pattern: re.Pattern[bytes], attributes: bytes) -> int:
    match = pattern.search(attributes)
    return int(match[1]) if match else 1


# All archives: their members, and the markup in them.

MAX_ARCHIVE_DEPTH = 4  # a workbook inside a report has depth 2
_HEAD_BYTES = 65536  # of a member; contains its DOCTYPE and its first element
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
_DAMAGED = "The document is an archive that is damaged or truncated. Replace it with an intact copy."
_ENCRYPTED_DOCUMENT = "The document is encrypted. Save a copy without a password."


def check_archive(content: bytes, options: ParsingOptions) -> tuple[str, ...]:
    """Refuse an archive with too many members, too much content, too deep nesting or encryption."""
    return _ArchiveCheck(options).check(content, depth=1)


@contextmanager
def reporting_damage() -> Iterator[None]:
    """Raise `CorruptDocument` for any error of reading a damaged archive."""
    try:
        yield
    except _UNREADABLE as error:
        raise CorruptDocument(_DAMAGED) from error


def check_has_slides(content: bytes) -> None:
    """Raise when an intact presentation has no slides."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        names = archive.namelist()
        deck = archive.read(_DECK) if _DECK in names else b""
    is_empty = b"presentation>" in deck and b"sldId " not in deck
    if is_empty and not any(name.startswith("ppt/slides/") for name in names):
        raise EmptyDocument("The presentation has no slides. Add some or remove it.")


class _ArchiveCheck:
    """Totals over the archive of a document and all archives nested in it."""

    def __init__(self, options: ParsingOptions) -> None:
        self._options = options
        self._members = self._packed = self._unpacked = 0

    def check(self, content: bytes, depth: int) -> tuple[str, ...]:
        if depth > MAX_ARCHIVE_DEPTH:
            raise DecompressionBomb(
                f"The document contains archives nested too deep (limit {MAX_ARCHIVE_DEPTH}). "
                "Unpack the files that you need."
            )
        warnings: dict[str, None] = {}
        try:
            with zipfile.ZipFile(BytesIO(content)) as archive:
                self._count(archive.infolist(), len(content))
                for member in archive.infolist():
                    warnings |= dict.fromkeys(self._check_member(archive, member, depth))
        except _UNREADABLE as error:
            if depth > 1:  # a damaged attachment does not affect the document
                return ()
            raise CorruptDocument(_DAMAGED) from error
        return tuple(warnings)

    def _count(self, members: list[zipfile.ZipInfo], packed_bytes: int) -> None:
        self._members += len(members)
        if self._members > self._options.max_archive_members:
            raise DecompressionBomb(
                f"The archive has too many members: {self._members} (limit "
                f"{self._options.max_archive_members}). If you trust its source, raise "
                "parsing.max_archive_members."
            )
        self._unpacked += sum(member.file_size for member in members)
        self._packed = self._packed or packed_bytes
        check_unpacked_size("The archive", self._packed, self._unpacked, self._options)

    def _check_member(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, depth: int) -> tuple[str, ...]:
        name = member.filename.lower()
        if member.flag_bits & _ENCRYPTED:
            raise PasswordNeeded(_ENCRYPTED_DOCUMENT)
        if name.endswith(_MARKUP):
            return self._check_markup(archive, member)
        return self.check(archive.read(member), depth + 1) if name.endswith(_PACKED) else ()

    def _check_markup(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[str, ...]:
        with archive.open(member) as stream:
            head = stream.read(_HEAD_BYTES)
            if member.filename == "META-INF/manifest.xml" and b"encryption-data" in head:
                raise PasswordNeeded(_ENCRYPTED_DOCUMENT)
            if member.filename == "META-INF/encryption.xml" and _LOCKED_CHAPTER.search(head):
                raise PasswordNeeded("The book has copy protection (DRM). Get a copy without it.")
            # a DOCTYPE precedes the first element; in a head without an element, comments may hide one
            if member.filename.startswith("xl/worksheets/"):
                head += stream.read()
                check_sheet(head, self._options)
            elif member.filename == "content.xml":
                head += stream.read()
                check_repeats(head, self._options)
            if _DOCTYPE.search(head) or not _ROOT.search(head):
                return check_entities("A part of the document", head + stream.read(), self._options)
        return ()


# Legacy Office files (OLE): their type, by the first names in their directory.


_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_UNREADABLE_OLE = (
    *(OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(struct.error, RecursionError),
)
# Sizes of a directory entry and of the name in it (MS-CFB).
_ENTRY_BYTES = 128
_ENTRIES = 32  # programs write the main streams first
_NAME_BYTES = 64
_OLE_TYPES = {
    "WordDocument": "application/msword",
    "Workbook": "application/vnd.ms-excel",
    "Book": "application/vnd.ms-excel",
    "PowerPoint Document": "application/vnd.ms-powerpoint",
    "__properties_version1.0": "application/vnd.ms-outlook",
    "__nameid_version1.0": "application/vnd.ms-outlook",
}


def ole_type(content: bytes, mime: str) -> str:
    """Return the media type of an OLE file, else `mime`; raise for an encrypted file."""
    if not content.startswith(_MAGIC):
        return mime
    if _ENCRYPTED_PACKAGE in content:
        raise PasswordNeeded("The Office file is encrypted. Save a copy without a password.")
    header = content[:512].ljust(512, b"\x00")
    shift, first = struct.unpack_from("<H", header, 30)[0], struct.unpack_from("<I", header, 48)[0]
    start = (first + 1) << min(shift, 16)
    entries = content[start : start + _ENTRIES * _ENTRY_BYTES]
    for at in range(0, len(entries), _ENTRY_BYTES):
        name = entries[at : at + _NAME_BYTES].decode("utf-16-le", "replace").split("\x00", 1)[0]
        if name in _OLE_TYPES:
            return _OLE_TYPES[name]
    return mime


def check_outlook(content: bytes, options: ParsingOptions) -> None:
    """Refuse an e-mail whose directory entries add up to too much: overlapping entries are all read."""
    from olefile import OleFileIO

    if not content.startswith(_MAGIC):
        return
    try:
        with OleFileIO(BytesIO(content)) as file:
            total = sum(entry.size for entry in file.direntries if entry is not None)
    except _UNREADABLE_OLE as error:
        raise CorruptDocument(
            "The e-mail is damaged or truncated. Replace it with an intact copy."
        ) from error
    check_unpacked_size("The e-mail", len(content), total, options)


# Templates, slide shows and documents with macros: plain documents except for their content type, for which
# Docling's libraries refuse them. Macros are never run.

_OFFICE = b"application/vnd.openxmlformats-officedocument."
_LABELS = "[Content_Types].xml"
_WORD = re.compile(
    rb"application/vnd\.(?:openxmlformats-officedocument\.wordprocessingml\.template"
    rb"|ms-word\.(?:document|template)\.macroEnabled(?:Template)?)\.main\+xml",
    re.IGNORECASE,
)
_SLIDES = re.compile(
    rb"application/vnd\.(?:openxmlformats-officedocument\.presentationml\.(?:template|slideshow)"
    rb"|ms-powerpoint\.(?:template|slideshow)\.macroEnabled)\.main\+xml",
    re.IGNORECASE,
)
_OPEN = re.compile(rb"(application/vnd\.oasis\.opendocument\.[a-z]+)-template")


def relabel_as_document(content: bytes) -> bytes:
    """Return the archive with the content type of a plain document; the same bytes if it has it already."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        names = set(archive.namelist())
        labels = names & {_LABELS, "mimetype", "META-INF/manifest.xml"}
        changed = {}
        for name in labels:
            label = _WORD.sub(_OFFICE + b"wordprocessingml.document.main+xml", archive.read(name))
            label = _SLIDES.sub(_OFFICE + b"presentationml.presentation.main+xml", label)
            changed[name] = _OPEN.sub(rb"\1", label)
        if all(archive.read(name) == label for name, label in changed.items()):
            return content
        relabelled = BytesIO()
        with zipfile.ZipFile(relabelled, "w", zipfile.ZIP_STORED) as target:
            for name in archive.namelist():
                if name in names:  # of a repeated name, readers take the last member
                    names.discard(name)
                    target.writestr(zipfile.ZipInfo(name), changed.get(name) or archive.read(name))
        return relabelled.getvalue()

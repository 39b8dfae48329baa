"""Office files, books and other archives: how much is in them, by their directory, before it is unpacked."""

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

from ingest_assets.parsing.errors import CorruptDocument, DecompressionBomb, EmptyDocument, PasswordNeeded
from ingest_assets.parsing.guard.limits import refuse_bomb, refuse_large_table
from ingest_assets.parsing.guard.markup import check_entities
from ingest_assets.settings.parsing import ParsingOptions

# Spreadsheets with a value far out: reading them goes through every cell up to there.


CELL_BYTES = 128  # what an empty cell costs
_CELL = re.compile(rb"<(?:\w+:)?c\b[^<>]*?\br=\"([A-Za-z]{1,3})(\d{1,7})\"")


def check_sheet(content: bytes, options: ParsingOptions) -> None:
    """Refuse a sheet whose cells span more than can be gone through, however few they are."""
    left = top = 1 << 30
    right = bottom = count = 0
    for found in _CELL.finditer(content):
        column, row = _column(found[1]), int(found[2])
        left, right = min(left, column), max(right, column)
        top, bottom = min(top, row), max(bottom, row)
        count += 1
    cells = max(0, right - left + 1) * max(0, bottom - top + 1)
    refuse_bomb("A sheet of the workbook", cells * CELL_BYTES, cells * CELL_BYTES, options)
    refuse_large_table("A sheet of the workbook", count)


def _column(name: bytes) -> int:
    number = 0
    for letter in name.upper():
        number = number * 26 + letter - 64
    return number


# OpenDocument, where one cell or one space may stand for a million others.


_ODF_PART = re.compile(
    rb"<(?:\w+:)?(?:(table)(?=[\s>])|(table-row)\b([^<>]*)|(?:covered-)?table-cell\b([^<>]*?)(/?))>|"
    rb"</(?:\w+:)?table-row>"
)
_ROWS = re.compile(rb"\bnumber-rows-repeated=[\"'](\d{1,9})")
_SPACES = re.compile(rb"<(?:\w+:)?s\s[^<>]*?\bc=[\"'](\d{1,12})")
_COLUMNS = re.compile(rb"\bnumber-columns-repeated=[\"'](\d{1,9})")


def check_repeats(content: bytes, options: ParsingOptions) -> None:
    """Refuse tables that go too far out, and gaps that are too wide."""
    spaces = sum(int(count) for count in _SPACES.findall(content))
    refuse_bomb("The text", len(content), spaces, options)
    for rows, columns in _table_sizes(content):
        cells = rows * columns
        refuse_bomb("A table of the document", cells * CELL_BYTES, cells * CELL_BYTES, options)
        refuse_large_table("A table of the document", cells)


def _table_sizes(content: bytes) -> Iterator[tuple[int, int]]:
    """Rows and columns of each table up to its last cell with content: what is empty after it is not read."""
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
    found = pattern.search(attributes)
    return int(found[1]) if found else 1


# Archives of all kinds: their members, and the markup in them.

MAX_ARCHIVE_DEPTH = 4  # a workbook inside a report is two deep
_HEAD_BYTES = 65536  # of a part, where its DOCTYPE and its first element are
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
        warnings: dict[str, None] = {}
        try:
            with zipfile.ZipFile(BytesIO(content)) as archive:
                self._count(archive.infolist(), len(content))
                for member in archive.infolist():
                    warnings |= dict.fromkeys(self._check_member(archive, member, depth))
        except _UNREADABLE as error:
            if depth > 1:  # an attachment that is none is nobody's concern
                return ()
            raise CorruptDocument(_DAMAGED) from error
        return tuple(warnings)

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

    def _check_member(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, depth: int) -> tuple[str, ...]:
        name = member.filename.lower()
        if member.flag_bits & _ENCRYPTED:
            raise PasswordNeeded("The document is encrypted; save a copy without a password.")
        if name.endswith(_MARKUP):
            return self._check_markup(archive, member)
        return self.check(archive.read(member), depth + 1) if name.endswith(_PACKED) else ()

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


# Office files of the old kind: what they are, by the first names in their directory.


_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_UNREADABLE_OLE = (
    *(OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(struct.error, RecursionError),
)
# Sizes of a directory entry and of the name in it, by the file format (MS-CFB).
_ENTRY_BYTES = 128
_ENTRIES = 32  # programs write what matters first
_NAME_BYTES = 64
_KINDS = {
    "WordDocument": "application/msword",
    "Workbook": "application/vnd.ms-excel",
    "Book": "application/vnd.ms-excel",
    "PowerPoint Document": "application/vnd.ms-powerpoint",
    "__properties_version1.0": "application/vnd.ms-outlook",
    "__nameid_version1.0": "application/vnd.ms-outlook",
}


def ole_type(content: bytes, mime: str) -> str:
    """The media type of such a file, or what it was taken for; refuses one that is locked."""
    if not content.startswith(_MAGIC):
        return mime
    if _ENCRYPTED_PACKAGE in content:
        raise PasswordNeeded("The Office file is encrypted; save a copy without a password.")
    header = content[:512].ljust(512, b"\x00")
    shift, first = struct.unpack_from("<H", header, 30)[0], struct.unpack_from("<I", header, 48)[0]
    start = (first + 1) << min(shift, 16)
    entries = content[start : start + _ENTRIES * _ENTRY_BYTES]
    for at in range(0, len(entries), _ENTRY_BYTES):
        name = entries[at : at + _NAME_BYTES].decode("utf-16-le", "replace").split("\x00", 1)[0]
        if name in _KINDS:
            return _KINDS[name]
    return mime


def check_outlook(content: bytes, options: ParsingOptions) -> None:
    """Refuse an e-mail whose directory names the same bytes over and over: each would be read."""
    from olefile import OleFileIO

    if not content.startswith(_MAGIC):
        return
    try:
        with OleFileIO(BytesIO(content)) as file:
            total = sum(entry.size for entry in file.direntries if entry is not None)
    except _UNREADABLE_OLE as error:
        raise CorruptDocument("The e-mail is damaged or truncated; get an intact copy.") from error
    refuse_bomb("The e-mail", len(content), total, options)


# Templates, slide shows and documents with macros: the same parts under another label.
#
# The libraries behind Docling refuse them for the label alone. None of the macros is kept for anybody to run.


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


def as_document(content: bytes) -> bytes:
    """The archive labelled as a plain document; the very same bytes when it is one."""
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
        made = BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as target:
            for name in archive.namelist():
                if name in names:  # when one comes twice, readers take the last
                    names.discard(name)
                    target.writestr(zipfile.ZipInfo(name), changed.get(name) or archive.read(name))
        return made.getvalue()

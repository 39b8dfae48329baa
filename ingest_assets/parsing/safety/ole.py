"""Office files of the old kind: what they are, by the first names in their directory."""

import struct
from io import BytesIO

from ingest_assets.model.options import ParsingOptions
from ingest_assets.parsing.errors import CorruptDocument, PasswordNeeded
from ingest_assets.parsing.safety.bombs import refuse_bomb

_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_UNREADABLE = (
    *(OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(struct.error, RecursionError),
)
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
    if _ENCRYPTED in content:
        raise PasswordNeeded("The Office file is encrypted; save a copy without a password.")
    return next((_KINDS[name] for name in _names(content) if name in _KINDS), mime)


def check_outlook(content: bytes, options: ParsingOptions) -> None:
    """Refuse an e-mail whose directory names the same bytes over and over: each would be read."""
    from olefile import OleFileIO

    if not content.startswith(_MAGIC):
        return
    try:
        with OleFileIO(BytesIO(content)) as file:
            total = sum(entry.size for entry in file.direntries if entry is not None)
    except _UNREADABLE as error:
        raise CorruptDocument("The e-mail is damaged or truncated; get an intact copy.") from error
    refuse_bomb("The e-mail", len(content), total, options)


def _names(content: bytes) -> list[str]:
    """The names that the directory begins with."""
    header = content[:512].ljust(512, b"\x00")
    shift, first = struct.unpack_from("<H", header, 30)[0], struct.unpack_from("<I", header, 48)[0]
    start = (first + 1) << min(shift, 16)
    entries = content[start : start + _ENTRIES * _ENTRY_BYTES]
    return [_name(entries[at : at + _NAME_BYTES]) for at in range(0, len(entries), _ENTRY_BYTES)]


def _name(field: bytes) -> str:
    return field.decode("utf-16-le", "replace").split("\x00", 1)[0]

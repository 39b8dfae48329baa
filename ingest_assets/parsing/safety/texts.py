"""Text in unknown encodings: read as what it is, mended where little is broken, refused where it is none."""

import codecs
import re
from dataclasses import dataclass, replace

from ingest_assets.parsing.errors import GarbledText
from ingest_assets.parsing.media import unmarked_encoding

MAX_BAD_SHARE = 0.1  # of the characters, before text is called garbled
MAX_ACCENTED_SHARE = 0.2  # of the bytes, in languages that Windows-1252 was made for
MIN_ACCENTED = 32  # bytes, before their look says anything
_ENCODINGS = (
    *("cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
    *("koi8_r", "koi8_u", "iso8859_5", "cp932", "euc_jp", "gb18030", "big5", "cp949"),
)
_REPLACED = "W_TEXT_REPLACED"
_SAMPLE_BYTES = 65536
_BAD = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffd-\uffff]")
_ACCENTED = re.compile(b"[\x80-\xff]")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text, and what had to be done for it; `is_as_declared` when any reader would read the bytes so."""

    text: str
    warnings: tuple[str, ...] = ()
    is_as_declared: bool = False


def decode_text(content: bytes, declared: str = "") -> Decoded:
    """The text of these bytes, or `GarbledText`. By its mark, as declared, as UTF-8, or by the look of it."""
    decoded = _without_zeros(_decoded(content, declared))
    bad = len(_BAD.findall(decoded.text))
    if bad > MAX_BAD_SHARE * max(1, len(decoded.text)):
        raise GarbledText(
            "The file says it is text, but much of it is control characters or bytes that mean nothing; "
            "get an intact copy."
        )
    return decoded


def _without_zeros(decoded: Decoded) -> Decoded:
    """A zero byte is no character; parsers of markup stumble over it."""
    if "\x00" not in decoded.text:
        return decoded
    text = decoded.text.replace("\x00", "\ufffd")
    return Decoded(text, (*(each for each in decoded.warnings if _REPLACED not in each), _replaced(text)))


def _decoded(content: bytes, declared: str) -> Decoded:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _marked(content[len(mark) :], encoding)
    if wide := unmarked_encoding(content[:_SAMPLE_BYTES]):
        return replace(_marked(content, wide), is_as_declared=False)
    for encoding in (declared, "utf-8"):
        if encoding and (text := _strictly(content, encoding)) is not None:
            return Decoded(text, is_as_declared=True)
    return _mended(content) or _guessed(content)


def _marked(content: bytes, encoding: str) -> Decoded:
    text = _strictly(content, encoding)
    if text is not None:
        return Decoded(text, is_as_declared=encoding == "utf-8")
    text = content.decode(encoding, "replace")
    return Decoded(text, (_replaced(text),))


def _mended(content: bytes) -> Decoded | None:
    """UTF-8 with some broken bytes, when more of it is whole than broken."""
    text = content.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    whole = sum(character > "\x7f" for character in text) - broken
    return Decoded(text, (_replaced(text),)) if whole > broken else None


def _guessed(content: bytes) -> Decoded:
    sample = content[:_SAMPLE_BYTES]
    accented = len(_ACCENTED.findall(sample))
    is_western = accented <= max(MAX_ACCENTED_SHARE * len(sample), MIN_ACCENTED)
    encoding = "windows-1252" if is_western else _by_its_look(sample)
    text = content.decode(encoding, "replace")
    return Decoded(text, (f"W_TEXT_ENCODING: not UTF-8, read as {encoding}",))


def _by_its_look(sample: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=list(_ENCODINGS)).best()
    if best is None:
        raise GarbledText("The file says it is text, but in no encoding known here; get an intact copy.")
    return best.encoding


def _strictly(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def _replaced(text: str) -> str:
    return f"{_REPLACED}: {text.count(chr(0xFFFD))} characters could not be decoded"

"""Reading the files of labelled sets; what cannot be read is said in one line."""

import re
from pathlib import Path

from ingest_assets.model.errors import ConfigError

_SURROGATE = re.compile("[\ud800-\udfff]")


def read_text(path: Path) -> str:
    """The text of a file, its line ends as they are; spans count them."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); give the set's folder.") from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}: line {line} is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8."
        ) from None


def read_unmarked(path: Path) -> str:
    """The text of a file without the byte order mark that Windows puts before it."""
    return read_text(path).removeprefix("\ufeff")


def is_text(given: object) -> bool:
    """True for a string that holds something and can be stored: half a character cannot."""
    return isinstance(given, str) and bool(given.strip()) and not _SURROGATE.search(given)


def read_lines(path: Path) -> list[tuple[int, str]]:
    """Lines that hold something, with their numbers. Other ends than newlines are part of a text."""
    lines = read_unmarked(path).split("\n")
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]

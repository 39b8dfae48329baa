"""Reading the files of labelled sets; what cannot be read is said in one line."""

from pathlib import Path

from ingest_assets.model.errors import ConfigError


def read_text(path: Path) -> str:
    """The text of a file, its line ends as they are; spans count them."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); give the set's folder.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 ({error.reason} at byte {error.start}).") from None


def read_unmarked(path: Path) -> str:
    """The text of a file without the byte order mark that Windows puts before it."""
    return read_text(path).removeprefix("\ufeff")


def read_lines(path: Path) -> list[tuple[int, str]]:
    """Lines that hold something, with their numbers."""
    lines = read_unmarked(path).splitlines()
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]

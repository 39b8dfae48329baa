"""Artifact lists: each good line of JSON becomes a queued artifact, each bad one is named by its number.

A list is read lazily and stored a thousand lines at a time, so it may be longer than memory, and one whose
import was interrupted can be imported again.
"""

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from ingest_assets.intake.queue.artifacts import NewArtifact
from ingest_assets.intake.queue.queue import Queue

MAX_LINE_BYTES = 1024 * 1024
_LINES_PER_STORE = 1000
_MAX_FAULTS, _MAX_NAME_CHARS = 3, 80  # one line on a screen says what is wrong
_MAX_DIGITS = 1000  # Python itself stops at 4300
_KEYS = ", ".join(entry.alias or name for name, entry in NewArtifact.model_fields.items())


@dataclass(frozen=True, slots=True)
class Malformed:
    """A line that is no artifact, and what was expected of it."""

    line: int
    reason: str


@dataclass(slots=True)
class ImportReport:
    """How many lines were new, known or repeated, and malformed; of these at most `max_kept` are kept."""

    max_kept: int | None = None
    new: int = 0
    duplicate: int = 0
    malformed: int = 0
    kept: list[Malformed] = field(default_factory=list)
    has_more: bool = False

    def add_malformed(self, line: int, reason: str) -> None:
        """Count a line, and keep it while there is room."""
        self.malformed += 1
        if self.max_kept is None or len(self.kept) < self.max_kept:
            self.kept.append(Malformed(line, reason))


@dataclass(frozen=True, slots=True)
class ArtifactList:
    """Lines of JSON; relative paths in them start at `folder`. `limit` is how many count, from the front."""

    stream: BinaryIO
    folder: Path
    limit: int | None = None

    def store(self, queue: Queue, now: float, report: ImportReport) -> None:
        """Queue every good line; what an exception leaves in the report is what was stored until then."""
        good = self._artifacts(report)
        while some := list(islice(good, _LINES_PER_STORE)):
            stored = queue.enqueue(some, now)
            report.new += len(stored.new)
            report.duplicate += len(stored.known)

    def _artifacts(self, report: ImportReport) -> Iterator[NewArtifact]:
        filled = ((number, line) for number, line in _lines(self.stream) if line is None or line.strip())
        for number, line in islice(filled, self.limit):
            try:
                yield self._parsed(line)
            except ValueError as error:
                report.add_malformed(number, str(error))
        report.has_more = next(filled, None) is not None

    def _parsed(self, line: bytes | None) -> NewArtifact:
        if line is None:
            raise ValueError(f"should have at most {MAX_LINE_BYTES:,} bytes")
        try:
            given = parsed_object(line.rstrip().decode())
        except UnicodeDecodeError as error:
            raise ValueError(f"should be UTF-8 text; byte {error.start + 1} is not") from None
        path = given.get("path")
        if isinstance(path, str) and path:
            given["path"] = str(self.folder / path)
        return new_artifact(given)


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Numbered lines; None for one that is too long, of which the rest is passed over."""
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) <= MAX_LINE_BYTES or line.endswith(b"\n"):
            yield number, line.removeprefix(codecs.BOM_UTF8)
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE_BYTES)
        yield number, None


def parsed_object(text: str) -> dict[str, Any]:
    """A JSON object, strictly: a key that is there twice would silently lose a value."""
    try:
        given = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"should be a JSON object; {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("should be a JSON object that is not nested so deep") from None
    if not isinstance(given, dict):
        raise ValueError(f"should be a JSON object, got {_JSON_NAMES[type(given)]}")
    return given


def new_artifact(given: dict[str, Any]) -> NewArtifact:
    """The artifact that was described; a `ValueError` says in one line what is wrong with it."""
    try:
        return NewArtifact.model_validate(given)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False)
        more = f"; and {len(faults) - _MAX_FAULTS} more faults" if len(faults) > _MAX_FAULTS else ""
        raise ValueError("; ".join(map(_explained, faults[:_MAX_FAULTS])) + more) from None


def _explained(fault: Any) -> str:
    where = ".".join(_shown(str(part)) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{where}: no such key; there are {_KEYS}"
    if fault["type"] == "missing":
        return f"{where}: should be given; only what has a url may go without"
    expected = re.sub(r"^(Value error, |(Input|Value|String) (?=should))", "", fault["msg"]).rstrip(".")
    return f"{where}: {expected}" if where else expected


def _shown(name: str) -> str:
    """Foreign text in a message: one line, and not a long one."""
    text = "".join(char if char.isprintable() else "�" for char in name)
    return text if len(text) <= _MAX_NAME_CHARS else text[: _MAX_NAME_CHARS - 1] + "…"


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"{_shown(twice)}: should be there once")
    return found


def _refused_constant(name: str) -> Any:
    raise ValueError(f"should be JSON, in which there is no {name}")


def _whole_number(digits: str) -> int:
    """Python refuses longer ones in words that are for programmers."""
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"should have numbers of at most {_MAX_DIGITS:,} digits")
    return int(digits)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_repeats, parse_constant=_refused_constant, parse_int=_whole_number
)
_JSON_NAMES = {
    list: "a list",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}

"""Import artifact lists: each valid line of JSON is queued, each invalid one is reported by its number.

A list is read lazily and stored a thousand lines at a time, so it can be larger than memory, and an
interrupted import can be repeated.
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
_MAX_FAULTS, _MAX_NAME_CHARS = 3, 80  # a reason is one line on a screen
_MAX_DIGITS = 1000  # Python's own limit is 4300
_KEYS = ", ".join(entry.alias or name for name, entry in NewArtifact.model_fields.items())


@dataclass(frozen=True, slots=True)
class Malformed:
    """An invalid line, and what was expected."""

    line: int
    reason: str


@dataclass(slots=True)
class ImportReport:
    """Counts of new, duplicate (known or repeated) and malformed lines; keeps `max_kept` of these."""

    max_kept: int | None = None
    new: int = 0
    duplicate: int = 0
    malformed: int = 0
    kept: list[Malformed] = field(default_factory=list)
    has_more: bool = False

    def add_malformed(self, line: int, reason: str) -> None:
        """Count a line, and keep it unless `max_kept` is reached."""
        self.malformed += 1
        if self.max_kept is None or len(self.kept) < self.max_kept:
            self.kept.append(Malformed(line, reason))


@dataclass(frozen=True, slots=True)
class ArtifactList:
    """Lines of JSON. Relative paths start at `folder`; only the first `limit` lines count."""

    stream: BinaryIO
    folder: Path
    limit: int | None = None

    def store(self, queue: Queue, now: float, report: ImportReport) -> None:
        """Queue every valid line. After an exception, the report counts what was stored before it."""
        valid = self._artifacts(report)
        while group := list(islice(valid, _LINES_PER_STORE)):
            stored = queue.enqueue(group, now)
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
            fields = parsed_object(line.rstrip().decode())
        except UnicodeDecodeError as error:
            raise ValueError(f"should be UTF-8 text; byte {error.start + 1} is not") from None
        path = fields.get("path")
        if isinstance(path, str) and path:
            fields["path"] = str(self.folder / path)
        return new_artifact(fields)


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield numbered lines; None for a line that is too long, the rest of which is skipped."""
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
    """Return a JSON object. Reject duplicate keys, which would silently lose a value."""
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"should be a JSON object; {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("is nested too deeply for JSON parsing") from None
    if not isinstance(value, dict):
        raise ValueError(f"should be a JSON object, got {_JSON_NAMES[type(value)]}")
    return value


def new_artifact(fields: dict[str, Any]) -> NewArtifact:
    """Validate the fields of an artifact; raise `ValueError` with all faults in one line."""
    try:
        return NewArtifact.model_validate(fields)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False)
        more = f"; and {len(faults) - _MAX_FAULTS} more faults" if len(faults) > _MAX_FAULTS else ""
        raise ValueError("; ".join(map(_explained, faults[:_MAX_FAULTS])) + more) from None


def _explained(fault: Any) -> str:
    where = ".".join(_shown(str(part)) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{where}: unknown key; known keys are {_KEYS}"
    if fault["type"] == "missing":
        return f"{where}: missing; required without a url"
    expected = re.sub(r"^(Value error, |(Input|Value|String) (?=should))", "", fault["msg"]).rstrip(".")
    return f"{where}: {expected}" if where else expected


def _shown(name: str) -> str:
    """Return user text for a message: printable and short."""
    text = "".join(char if char.isprintable() else "�" for char in name)
    return text if len(text) <= _MAX_NAME_CHARS else text[: _MAX_NAME_CHARS - 1] + "…"


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        ((repeated, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"{_shown(repeated)}: duplicate key")
    return fields


def _refused_constant(name: str) -> Any:
    raise ValueError(f"should be JSON, which has no {name}")


def _whole_number(digits: str) -> int:
    """Reject long numbers with a clear message, unlike Python's."""
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

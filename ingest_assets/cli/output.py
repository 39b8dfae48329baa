"""The output of commands: text for people, one JSON object for programs."""

import contextlib
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table as Grid

out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

# Lines of failures after a run, and documents named in a line for several.
_MAX_LINES = 20
_MAX_NAMED = 3


def print_json(value: Any) -> None:
    """Print one JSON object on standard output."""
    # Programs read JSON as UTF-8; in any other encoding only ASCII escapes are safe.
    is_unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"
    out.file.write(json.dumps(value, ensure_ascii=not is_unicode, indent=2) + "\n")


def say(line: str = "") -> None:
    """Print a line of plain text; brackets in names are not markup."""
    out.print(line, markup=False)


def warn(line: str) -> None:
    """Print a line on standard error."""
    err.print(line, markup=False)


def grid(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """Print a small table; columns of numbers are right-aligned."""
    table = Grid(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    numeric = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
    for name, is_number in zip(columns, numeric, strict=True):
        table.add_column(name, justify="right" if is_number and rows else "left", overflow="fold")
    for row in rows:
        table.add_row(*(f"{value:.1f}" if isinstance(value, float) else str(value) for value in row))
    out.print(table, markup=False)


# Lines that several commands print.


def counted(count: int, name: str) -> str:
    """Return a number with its noun, as in `1 chunk` and `2 chunks`."""
    return f"{count} {name}{'' if count == 1 else 's'}"


def reasons_in_words(rejections: Mapping[str, int]) -> str:
    """Return the reasons of rejections with their counts, as in `doc_dedup: duplicate (2)`."""
    return ", ".join(f"{reason} ({count})" for reason, count in rejections.items())


def scan_line(scan: dict[str, int]) -> str:
    """Return the result of a scan as a line."""
    return (
        f"Folders: {scan['new']} new, {scan['changed']} changed, {scan['moved']} moved, "
        f"{scan['deleted']} deleted, {scan['restored']} restored, {scan['unchanged']} unchanged files."
    )


def problem_line(problem: dict[str, Any]) -> str:
    """Return the line about a file that was not ingested."""
    return f"not ingested: {problem['source']}: {problem['path']}: {problem['reason']}."


def failure_lines(failures: Sequence[dict[str, Any]]) -> list[str]:
    """Return lines for the first failures, one line per cause, and the command that lists the others."""
    by_cause: dict[tuple[str, str, str], list[str]] = {}
    for failure in failures:
        cause = failure["stage"], failure["code"], failure["message"]
        by_cause.setdefault(cause, []).append(failure["doc_id"])
    lines, left = [], len(failures)
    for (stage, code, message), docs in list(by_cause.items())[:_MAX_LINES]:
        more = ", …" if len(docs) > _MAX_NAMED else ""
        several = f"{len(docs)} documents ({', '.join(docs[:_MAX_NAMED])}{more})"
        lines.append(f"failed: {docs[0] if len(docs) == 1 else several} [{stage} {code}] {message}")
        left -= len(docs)
    return [*lines, f"… and {left} more: ingest failures list"] if left else lines


def vectors_in_words(numbers: Mapping[str, Any], *, with_lexical: bool) -> str:
    """Return the number of vectors, by family if there are several."""
    families = {"dense": "vectors", "sparse": "sparse"} | ({"lexical": "lexical"} if with_lexical else {})
    counts = [f"{numbers[name]} {family}" for family, name in families.items() if name in numbers]
    if len(counts) == 1:
        return counted(numbers["vectors"], "vector")
    return f"{', '.join(counts[:-1])} and {counts[-1]} vectors"


def queue_line(queue: dict[str, Any]) -> str:
    """Return the states of the queue as a line, and what to do about waiting artifacts."""
    states = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in queue["states"].items())
    if not queue["waiting"]:
        return f"Queue: {states}."
    return (
        f"Queue: {states}. {queue['waiting']} are not acquired yet; the next attempt is due at "
        f"{queue['next_at']}. `ingest queue run --drain` waits for all of them."
    )


def engine_line(engine: dict[str, Any]) -> str:
    """Return the line about the engine that reads PDFs and images."""
    if engine["chosen"] is None:
        return f"PDFs and images cannot be read: {engine['why']}"
    return f"PDFs and images are read by the {engine['chosen']} engine ({engine['why']})."


# Standard streams that are closed, full, read only in part, or not UTF-8.


def prepare_streams() -> None:
    """Open closed streams on the null device, and escape characters that the encoding lacks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # else the next file to be opened would get its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
        stream = getattr(sys, name)
        if mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush_streams() -> int:
    """Flush the output; return 1 if it cannot be written, 0 otherwise.

    A pipe that its reader closed early is not an error.
    """
    code = 0
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            _discard(stream)
        except OSError as error:
            _discard(stream)
            warn(f"ingest: cannot write the output ({error.strerror}); check its disk or reader.")
            code = 1
    return code


def _discard(stream: TextIO) -> None:
    """Discard what is still buffered, so that the interpreter's own last flush does not fail."""
    with contextlib.suppress(OSError), Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())

"""How commands speak: people get text, programs get one JSON object on standard output or in a file."""

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

# Lines of failures after a run, and documents named in a line that stands for several.
_FIRST = 20
_FIRST_ALIKE = 3


def print_json(value: Any) -> None:
    """One object, nothing else, on standard output."""
    # A program reads UTF-8 or ASCII; in any other encoding escapes are what is sure to be JSON.
    is_unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"
    out.file.write(json.dumps(value, ensure_ascii=not is_unicode, indent=2) + "\n")


def say(line: str = "") -> None:
    """A line of plain text; brackets in names are not markup."""
    out.print(line, markup=False)


def warn(line: str) -> None:
    """A line for standard error."""
    err.print(line, markup=False)


def grid(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """A small table; the first column is text, numbers stand right."""
    table = Grid(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    numeric = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
    for name, is_number in zip(columns, numeric, strict=True):
        table.add_column(name, justify="right" if is_number and rows else "left", overflow="fold")
    for row in rows:
        table.add_row(*(f"{value:.1f}" if isinstance(value, float) else str(value) for value in row))
    out.print(table, markup=False)


# What several commands say in the same words.


def scan_line(scan: dict[str, int]) -> str:
    """What a scan found, for a person."""
    return (
        f"Folders: {scan['new']} new, {scan['changed']} changed, {scan['moved']} moved, "
        f"{scan['deleted']} deleted, {scan['restored']} back again, {scan['unchanged']} unchanged files."
    )


def problem_line(problem: dict[str, Any]) -> str:
    """A file that was not taken in, for a person."""
    return f"not taken in: {problem['source']}: {problem['path']}: {problem['reason']}."


def failure_lines(found: Sequence[dict[str, Any]]) -> list[str]:
    """Failures for a person: the first ones, those of one cause in one line, and where the others are."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for failure in found:
        alike.setdefault((failure["stage"], failure["code"], failure["message"]), []).append(
            failure["doc_id"]
        )
    lines, left = [], len(found)
    for (stage, code, message), docs in list(alike.items())[:_FIRST]:
        more = ", …" if len(docs) > _FIRST_ALIKE else ""
        several = f"{len(docs)} documents ({', '.join(docs[:_FIRST_ALIKE])}{more})"
        lines.append(f"failed: {docs[0] if len(docs) == 1 else several} [{stage} {code}] {message}")
        left -= len(docs)
    return [*lines, f"… and {left} more: ingest failures list"] if left else lines


def vectors_in_words(numbers: Mapping[str, Any], *, with_lexical: bool) -> str:
    """How many vectors there are; the families are named where there is more than one to tell apart."""
    counted = {"dense": "vectors", "sparse": "sparse"} | ({"lexical": "lexical"} if with_lexical else {})
    told = [f"{numbers[name]} {family}" for family, name in counted.items() if name in numbers]
    if len(told) == 1:
        return f"{numbers['vectors']} vectors"
    return f"{', '.join(told[:-1])} and {told[-1]} vectors"


def queue_line(queue: dict[str, Any]) -> str:
    """The queue, for a person: why something is not in the tables yet, and what to do."""
    states = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in queue["states"].items())
    if not queue["waiting"]:
        return f"Queue: {states}."
    return (
        f"Queue: {states}. {queue['waiting']} are not acquired yet, the next can be tried at "
        f"{queue['next_at']}: `ingest queue run --drain` stays until all are."
    )


def engine_line(engine: dict[str, Any]) -> str:
    """Which engine reads PDFs and images, for a person."""
    if engine["chosen"] is None:
        return f"PDFs and images cannot be read: {engine['why']}"
    return f"PDFs and images are read by the engine {engine['chosen']} ({engine['why']})."


# Standard streams of any kind: closed, full, read only in part, or in another encoding than UTF-8.


def prepare_streams() -> None:
    """Whatever is said can be written; a stream that was closed is one that nobody reads."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # or else the next file to be opened would take its place
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
        stream = getattr(sys, name)
        if mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush_streams() -> int:
    """Write what is left; gives the exit code where that was not possible, and 0 otherwise.

    Who closes a pipe early has read enough.
    """
    code = 0
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            _discard(stream)
        except OSError as error:
            _discard(stream)
            warn(f"ingest: the output could not be written ({error.strerror}).")
            code = 1
    return code


def _discard(stream: TextIO) -> None:
    """What is still in its buffer goes nowhere, and the interpreter's own last flush finds no fault."""
    with contextlib.suppress(OSError), Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())

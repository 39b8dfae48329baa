"""Standard streams of any kind: closed, full, read only in part, or in another encoding than UTF-8."""

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import TextIO

from ingest_assets.cli.output import warn


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

"""Runs of a command: in this process, through Dagster, and ended gently by Ctrl-C."""

import contextlib
import sys
from collections.abc import Iterator

from ingest_assets.app.driver import Executor
from ingest_assets.app.home import Home
from ingest_assets.cli.interrupts import PRESSES
from ingest_assets.defs.in_process import InProcess


@contextlib.contextmanager
def executing(home: Home, progress: str, *, with_settings: bool = False) -> Iterator[Executor]:
    """What runs batches of a home; `with_settings` where these are not those of the home's own file."""
    grace_s = max(home.options(stage).grace_s for stage in home.graph)
    answer = f"ingest: stopping; running documents get up to {grace_s:g} s, Ctrl-C again ends at once"
    in_process = InProcess(
        home, progress=progress, with_settings=with_settings, is_interrupted=lambda: PRESSES.count > 0
    )
    with PRESSES.answered(answer), in_process as executor:
        yield executor


def progress_mode(as_json: bool) -> str:
    """A bar for a person, lines for a log, nothing beside a JSON object."""
    if as_json:
        return "log"
    return "bar" if sys.stderr.isatty() else "lines"

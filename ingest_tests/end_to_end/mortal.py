"""Runs the `ingest` command in forked children that can be killed at any durable step.

`python -m ingest_tests.end_to_end.mortal` does slow imports once, and then reads one JSON object per line:
`{"arguments": […], "die_at": N or 0}`. Each is run by a separate child, which kills itself with SIGKILL at
its Nth step: before or after a file is replaced, or before a database is written. The answer is the child's
exit code, -9 if it died.
"""

import contextlib
import faulthandler
import importlib
import itertools
import json
import os
import signal
import sys
from typing import Any

_LONGEST_S = 600.0


def main() -> None:
    """Import, then fork for every line; no thread may be started before."""
    os.environ["OMP_NUM_THREADS"] = "1"
    from ingest_assets.cli.main import run
    from ingest_assets.embedders.providers import open_dense
    from ingest_assets.settings.embeddings import DenseOptions
    from ingest_assets.stages.base import PRELOAD

    for module in PRELOAD:
        importlib.import_module(module)
    open_dense(DenseOptions())  # for its imports
    _say("ready")
    for line in sys.stdin:
        wish = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_live(run, wish["arguments"], wish["die_at"]))
        _, status = os.waitpid(child, 0)
        _say(str(os.waitstatus_to_exitcode(status)))


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def _live(run: Any, arguments: list[str], die_at: int) -> int:
    faulthandler.dump_traceback_later(
        _LONGEST_S, exit=True
    )  # else a child that waits for a dead process never ends
    if die_at:
        _die_at_step(die_at)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # noqa: PTH123
        return int(run(arguments))


def _die_at_step(number: int) -> None:
    """Even steps die before they happen, odd ones after."""
    import sqlalchemy as sa

    steps = itertools.count(1)
    replace = os.replace

    def counted(source: Any, target: Any, **options: Any) -> None:
        is_last = next(steps) == number
        if is_last and number % 2 == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target, **options)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)

    def committing(_connection: sa.Connection) -> None:
        if next(steps) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = counted
    sa.event.listen(sa.Engine, "commit", committing)


if __name__ == "__main__":
    main()

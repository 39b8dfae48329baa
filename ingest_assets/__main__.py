"""`ingest` and `python -m ingest_assets`.

Worker processes import the main module again, so this one stays light: the command is imported when called.
"""

import os
import signal
import sys


def main() -> None:
    """Run the command line. Until it has been imported nothing is worth a tidy end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(130))
    _require_utf8_names()
    from ingest_assets.cli.main import main as run

    run()


def _require_utf8_names() -> None:
    """Start again where the locale would read file names otherwise: the id of a document must not depend on
    who runs the command. What is printed stays in the locale's encoding."""
    if sys.getfilesystemencoding() != "utf-8":
        spoken = {"PYTHONIOENCODING": getattr(sys.stdout, "encoding", None) or "utf-8"}
        os.execve(sys.executable, sys.orig_argv, spoken | os.environ | {"PYTHONUTF8": "1"})


if __name__ == "__main__":
    main()

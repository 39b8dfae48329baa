"""The entry point of `ingest` and `python -m ingest_assets`.

Worker processes import the main module again, so this module is small and imports the CLI only when called.
"""

import os
import signal
import sys


def main() -> None:
    """Run the CLI. A signal while it is imported exits at once: there is nothing to clean up yet."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(130))
    _require_utf8_names()
    from ingest_assets.cli.main import main as run

    run()


def _require_utf8_names() -> None:
    """Restart Python in UTF-8 mode if the locale has another encoding for file names: document ids must not
    depend on the locale. The output keeps the locale's encoding."""
    if sys.getfilesystemencoding() != "utf-8":
        output = {"PYTHONIOENCODING": getattr(sys.stdout, "encoding", None) or "utf-8"}
        os.execve(sys.executable, sys.orig_argv, output | os.environ | {"PYTHONUTF8": "1"})


if __name__ == "__main__":
    main()

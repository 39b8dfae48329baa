"""`ingest` and `python -m ingest_assets`.

Worker processes import the main module again, so this one stays light: the command is imported when called.
"""

import os
import signal


def main() -> None:
    """Run the command line. Until it has been imported nothing is worth a tidy end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(130))
    from ingest_assets.cli.main import main as run

    run()


if __name__ == "__main__":
    main()

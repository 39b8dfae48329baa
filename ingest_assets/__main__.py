"""`ingest` and `python -m ingest_assets`.

Worker processes import the main module again, so this one stays light: the command is imported when called.
"""


def main() -> None:
    """Run the command line."""
    from ingest_assets.cli.main import main as run

    run()


if __name__ == "__main__":
    main()

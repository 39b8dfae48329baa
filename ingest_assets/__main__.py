"""`python -m ingest_assets` is the `ingest` command."""

from ingest_assets.cli.main import main

if __name__ == "__main__":
    main()

"""What the runner costs, measured: `python -m ingest_tests.bench [NAME ...]`, or `make bench`."""

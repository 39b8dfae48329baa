"""Benchmarks: `python -m ingest_tests.bench [NAME ...]`, or `make bench`."""

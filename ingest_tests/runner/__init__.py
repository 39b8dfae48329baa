"""Tests of `ingest_assets.runner`."""

"""Tests of `ingest_assets.core`."""

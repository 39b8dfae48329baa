"""Tests of `ingest_assets.model`."""

"""Tests of `ingest_assets.intake`."""

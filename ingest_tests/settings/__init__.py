"""Tests of `ingest_assets.settings`."""

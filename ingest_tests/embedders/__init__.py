"""Tests of `ingest_assets.embedders`."""

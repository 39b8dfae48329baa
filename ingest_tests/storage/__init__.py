"""Tests of `ingest_assets.storage`."""

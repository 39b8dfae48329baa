"""Tests of `ingest_assets.stages.admission`."""

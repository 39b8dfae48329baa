"""Tests of `ingest_assets.stages.judging`."""

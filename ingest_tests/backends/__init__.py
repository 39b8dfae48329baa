"""Tests of `ingest_assets.backends`: one contract for all backends, and the guarantees of each."""

"""Tests of `ingest_assets`: one folder per room, plus architecture and end to end."""

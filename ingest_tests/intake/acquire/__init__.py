"""Tests of acquiring queued artifacts."""

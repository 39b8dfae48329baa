"""Tests of fetching, against a real loopback server."""

"""Tests of the parsing room: real Docling, tiny documents made on the spot."""

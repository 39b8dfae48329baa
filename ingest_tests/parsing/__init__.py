"""Tests of the parsing room: real Docling and tiny generated documents."""

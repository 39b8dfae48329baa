"""Labelled sets: documents, queries, and which document answers which query."""

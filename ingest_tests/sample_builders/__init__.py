"""Builders of the binary sample documents: prose under `prose/` becomes DOCX, PPTX, XLSX and PDF.

`python -m ingest_tests.sample_builders` rebuilds them into the shipped samples folder. The HTML and
Markdown samples are written by hand and stay as they are.
"""

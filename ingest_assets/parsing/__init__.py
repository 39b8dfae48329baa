"""Parsing: convert a document's bytes to DocTags, a Docling document and counts, offline and reproducibly.

`reader.py` reads one document, `media.py` detects the media type, `guard/` refuses unsafe files,
`engines.py` chooses the page engine, `pipelines.py` opens Docling's pipelines, and `pdf/` is the embedded
engine. A new file format needs an entry in `media.py`, its Docling backend in `pipelines.py` and its checks
in `guard/file_check.py`. Heavy libraries are imported by `DocumentReader`, once per worker process.
"""

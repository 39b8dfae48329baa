"""Reading: a document's bytes become DocTags, a Docling document and a few counts, offline and repeatably.

`reader.py` reads one document; `media.py` says what a file is, so a new file format begins there; `guard/`
refuses what would harm; `engines.py` chooses who reads pages, `pdf/` is the embedded engine. Nothing heavy is
imported until a `DocumentReader` is made; it is made once per worker process.
"""

"""Reading: a document's bytes become DocTags, a Docling document and a few counts, offline and repeatably.

`reader.py` reads one document; `media.py` says what a file is; `guard/` refuses what would harm; `engines.py`
chooses who reads pages, `pipelines.py` opens them, `pdf/` is the embedded engine. A new file format is an
entry in `media.py`, its Docling backend in `pipelines.py` and its checks in `guard/inspect.py`. Nothing heavy
is imported until a `DocumentReader` is made; it is made once per worker process.
"""

"""Reading: a document's bytes become DocTags, a Docling document and a few counts, offline and repeatably.

Nothing heavy is imported until a `DocumentReader` is made; it is made once per worker process.
"""

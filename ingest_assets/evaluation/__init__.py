"""Quality measures: parsed documents compared with their truth, and rankings compared with labelled queries.

`scores.py` (parsing) and `retrieval.py` are pure functions; `parse_quality.py` reads the documents, and
`retrieval_run.py` ingests and searches a labelled set.
"""

"""Searching what came out: `terms.py` makes terms of texts and queries, `bm25.py` ranks chunks by them,
`ranking.py` fuses rankings and lifts them from chunks to documents. Stop words are data (`stop_words.toml`).

Rankings over the tables of a home are put together in `app/search.py`.
"""

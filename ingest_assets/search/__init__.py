"""Search over the tables: `terms.py` turns texts and queries into terms, `bm25.py` ranks chunks by them,
`ranking.py` fuses rankings and converts them from chunks to documents. Stop words are in `stop_words.toml`.

`app/search.py` computes the rankings of a home.
"""

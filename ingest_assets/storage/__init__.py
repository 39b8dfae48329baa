"""Storage: atomic files, locks, and Parquet tables that describe themselves in their footers.

All writes go through `atomic.py`. `parquet.py` writes and reads one file and its footer, `table.py` merges
staged parts into a batch's table, `model_sets.py` separates the tables of several models of a family, and
`blobs.py` stores fetched bytes by their hash.
"""

"""How bytes rest: files that appear whole or not at all, locks, and tables that describe themselves.

`atomic.py` is the one door for writes, `parquet.py` writes and reads a file and its footer, `table.py` merges
staged parts into a batch's table, `model_sets.py` keeps several models' tables of one family apart,
`blobs.py` stores acquired bytes by their hash.
"""

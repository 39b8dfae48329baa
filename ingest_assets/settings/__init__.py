"""Everything that can be configured, one file per section: what it is, its default and its limits.

`tree.py` puts the sections together and has each stage's defaults (workers, time limits, retries); `read.py`
reads `ingest.toml` and `INGEST_*` variables and says in one line what is wrong with them. A new setting is a
field of its section; limits of batches, the queue and downloads are in `intake.py`, what sections share in
`fields.py`.
"""

"""All settings, one file per section, with defaults, limits and descriptions.

`tree.py` combines the sections and has each stage's defaults (workers, time limits, retries). `read.py` reads
`ingest.toml` and `INGEST_*` variables and explains each invalid value in one line. A new setting is a field
of its section. Limits of batches, the queue and downloads are in `intake.py`, shared types in `fields.py`.
"""

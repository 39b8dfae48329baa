"""Basic types that every room may use: errors and their codes, work items and outcomes, the columns of every
table, fingerprints and hashes, the paths of a home folder, duplicate claims, and the protocols (`ports.py`)
that keep rooms from importing each other.

Add a new error code to `errors.py` and a new column to `schemas.py`. For a new column, also raise the
`version` of the stage that fills it, so that existing rows are rebuilt.
"""

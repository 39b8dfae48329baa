"""The nouns of the product, which every room may use: errors with their codes, work items and outcomes, the
columns of every table, fingerprints and hashes, the paths of a home folder, duplicate claims, and the ports
by which rooms meet without importing each other.

A new error code stands in `errors.py`, a new column in `schemas.py`; raise `version` of the
stage that fills it, so that old rows are made again.
"""

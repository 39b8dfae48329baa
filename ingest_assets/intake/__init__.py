"""How documents get in: the ledger, which catalogues every document, and the batches.

`folders/` scans watched folders for new, changed, moved and deleted files. `queue/` holds the artifacts to
acquire, with leases, limits, quotas and retries (`fail_and_retry`). `fetch/` downloads one URL, politely and
safely. `batches.py` assigns each document to a batch, `duplicates.py` decides which of several equal
documents counts. `schema.py` defines the ledger's tables, `database.py` opens them in SQLite or PostgreSQL,
and `ledger_copy.py` copies them for read-only commands.
"""

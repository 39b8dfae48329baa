"""How documents get in: the ledger that knows each one, and the batches they live in.

`folders/` walks watched folders and finds what is new, changed, moved or gone. `queue/` keeps what is to be
acquired, with leases, limits and quotas, and tries downloads again (`fail_and_retry`). `fetch/` gets one URL,
politely and safely. `batches.py` gives each document its batch for life, `duplicates.py` decides which of
several equal documents counts. `schema.py` has the ledger's tables, `database.py` opens them in SQLite or
PostgreSQL, and `ledger_copy.py` copies them for those who only look.
"""

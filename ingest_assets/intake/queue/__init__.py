"""The queue of artifacts to acquire: `queue.py` adds, leases and ends them, `lease_order.py` decides which is
next, `quotas.py` and `metrics.py` count. `acquire.py` works on leased artifacts, `catalogue.py` enters them
in the ledger, `artifacts.py` defines them, and `import_list.py` reads lists of them.
"""

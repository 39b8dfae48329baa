"""The queue of what is to be acquired: `queue.py` puts in, leases and ends, `lease_order.py` decides who is
next, `quotas.py` and `metrics.py` count. `acquire.py` works on leased artifacts, `acquired.py` catalogues
them, `artifacts.py` says what one is, and `import_list.py` reads lists of them.
"""

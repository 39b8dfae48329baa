"""Watched folders: `walk.py` lists files, `changes.py` decides what is new, changed, moved or gone, and
`scan.py` brings the ledger up to date with them, within a budget of time.
"""

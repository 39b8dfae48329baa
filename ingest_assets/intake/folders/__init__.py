"""Watched folders: `walk.py` lists files, `changes.py` finds new, changed, moved and deleted ones, and
`scan.py` updates the ledger within a time limit.
"""

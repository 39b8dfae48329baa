"""The stages. Each is a frozen, picklable dataclass in its own module and turns one item into rows.

`base.py` has the `Stage` class, the plan and the worker that all stages share; `inputs.py` reads the tables
of earlier stages, and `object_pool.py` keeps objects that are expensive to open. Checks of a stage's own
table are in its `checks`. To add a stage, see `ingest_assets/docs/adding-a-stage.md`.
"""

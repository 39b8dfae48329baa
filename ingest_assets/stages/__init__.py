"""What happens to one item: each stage is a frozen, picklable recipe in a module of its own.

`base.py` has the `Stage` class, the plan and the worker that every stage shares; `inputs.py` reads the tables
above, and `object_pool.py` keeps what is expensive to open. A check of a stage's own table is a `TableCheck`
in its `checks`. `ingest_assets/docs/adding-a-stage.md` adds a stage: a module here, and an entry in
`app/graph.py`.
"""

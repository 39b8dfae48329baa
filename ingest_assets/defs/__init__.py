"""The Dagster deployment, and nothing else: every rule it follows is in `app`.

`assets.py` makes one asset per stage of the graph, `checks.py` its asset checks, `io_manager.py` commits and
loads tables, `automation.py` has jobs, sensors and the schedule, `resources.py` the home and the
`StageRunner` by which an asset runs its stage. `in_process.py` runs batches for commands, `instance.py` opens
the Dagster instance of a home, `orphans.py` settles runs whose process died, and `build.py` binds it all into
definitions.
"""

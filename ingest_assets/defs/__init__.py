"""The Dagster deployment. It contains no rules of its own; those are in `app`.

`assets.py` defines one asset per stage of the graph and `checks.py` its asset checks. `io_manager.py` commits
and loads tables. `automation.py` has jobs, sensors and the schedule, `resources.py` the home and the
`StageRunner` with which an asset runs its stage. `in_process.py` runs batches for commands, `instance.py`
opens the Dagster instance of a home, `orphans.py` fails runs whose process died, and `build.py` combines all
of it into definitions.
"""

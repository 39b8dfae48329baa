"""What a run is: open a home, plan, run a stage, commit, report. No Dagster and no terminal here.

`driver.py` orders it all, for commands, sensors and the web UI alike: refresh, due batches, start and commit
a batch, finish. `home.py` is a home folder with its settings, ledger, stages and tables; `graph.py` lists the
stages, and a new one is an entry there. `plan.py` says what is done and what a run would do, `stage_run.py`
runs one stage for one batch, `execution.py` decides where and on how many workers. `checks.py` has the checks
of several tables and those that hold for every table; a check of one table stands with its stage. The others
are one command or concern each: `acquire`, `failures`, `model_switch`, `repair`, `validate`, `differences`,
`search`, `status`, `inspect`, `doctor`.
"""

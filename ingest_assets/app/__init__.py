"""What a run is: open a home, plan, run a stage, commit, report. Nothing here imports Dagster.

`driver.py` has the steps that commands, sensors and the web UI share: refresh, due batches, start and commit
a batch, finish. `home.py` is a home folder with its settings, ledger, stages and tables; `graph.py` lists the
stages, and a new stage is an entry there. `plan.py` tells what is done and what a run would do,
`stage_run.py` runs one stage for one batch, `execution.py` decides where and with how many workers.
`checks.py` has the checks that compare several tables or apply to every table; a check of one table is
defined by its stage. `convert.py` reads documents from Python without a home. Every other module is one
command or concern, such as `failures`, `model_switch` or `validate`.
"""

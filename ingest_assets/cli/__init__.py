"""The `ingest` command: the deployment from a terminal, on the same Dagster instance as the web UI.

`main.py` lists the commands and turns errors into exit codes. A command's name and flags stand in `commands/`
and load nothing heavy; what it prints is in the module of its name here; what it does is in `app`.
"""

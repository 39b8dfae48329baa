"""The `ingest` command: the deployment from a terminal, on the same Dagster instance as the web UI.

`main.py` has the table of commands and turns errors into exit codes. Each command, or group of commands, is
one module with its flags, its calls into `app` and its output; shared flags are in `flags.py`, shared lines
in `output.py`. A module is imported when its command is called, so `ingest --help` and mistyped commands load
neither Dagster nor Docling. Where `app` has a module of the same name (`plan`, `status`, `failures` …), that
module finds the facts and the one here counts and prints them.
"""

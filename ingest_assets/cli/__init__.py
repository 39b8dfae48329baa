"""The `ingest` command: the deployment from a terminal, on the same Dagster instance as the web UI.

`main.py` has the table of commands and turns errors into exit codes. Each command, or group of commands, is
one module: its flags, what it calls in `app`, and what it prints. It is imported when the command is called,
so that `ingest --help` and a mistyped command are answered without loading a library. A module that `app` has
by the same name (`plan`, `status`, `failures` …) finds out; the one here prints.
"""

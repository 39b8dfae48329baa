"""The `ingest` command: the deployment from a terminal, on the same Dagster instance as the web UI.

`main.py` has the table of commands and turns errors into exit codes. Each command, or group of commands, is
one module with its flags, its calls into `app` and its output. It is imported when the command is called, so
`ingest --help` and mistyped commands load no library. Where `app` has a module of the same name (`plan`,
`status`, `failures` …), that module computes and the one here prints.
"""

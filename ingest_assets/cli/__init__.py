"""The `ingest` command: the deployment from a terminal, on the same Dagster instance as the web UI."""

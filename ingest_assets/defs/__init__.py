"""Dagster's face: assets, checks, the IO manager, partitions, automation, and what they are wired with."""

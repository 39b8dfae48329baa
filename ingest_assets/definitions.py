"""The composition root: what `dagster`, `dg` and the web server load."""

import dagster as dg

from ingest_assets.defs.build import build_definitions


@dg.definitions
def defs() -> dg.Definitions:
    """Built when a server loads it, not when it is imported."""
    return build_definitions()

"""The entry point for `dagster`, `dg` and the web server."""

import dagster as dg

from ingest_assets.defs.build import build_definitions


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions; they are built when a server loads them, not on import."""
    return build_definitions()

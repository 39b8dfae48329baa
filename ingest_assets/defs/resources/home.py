"""The home folder as a Dagster resource."""

from pathlib import Path

import dagster as dg

from ingest_assets.defs.home import Home, open_home


class HomeResource(dg.ConfigurableResource):
    """Where this deployment keeps its data and state; empty means `INGEST_HOME`."""

    path: str = ""

    def open(self) -> Home:
        """The home with its settings as they are now."""
        return open_home(Path(self.path) if self.path else None)

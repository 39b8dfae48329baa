"""The home folder as a Dagster resource."""

from pathlib import Path

import dagster as dg

from ingest_assets.config import settings_from_json
from ingest_assets.defs.home import Home, open_home


class HomeResource(dg.ConfigurableResource):
    """Where this deployment keeps its data and state; an empty path means `INGEST_HOME`.

    `settings` is a whole settings tree as JSON; without it the home's own settings hold.
    """

    path: str = ""
    settings: str = ""

    def open(self) -> Home:
        """The home with its settings as they are now."""
        given = settings_from_json(self.settings) if self.settings else None
        return open_home(Path(self.path) if self.path else None, settings=given)

"""Hooks that do nothing: the default, and a base for hooks that care for one call only."""

from ingest_assets.model.errors import StageError
from ingest_assets.model.items import Result, WorkItem
from ingest_assets.model.outcomes import StageOutcome


class QuietHooks:
    """Override what you need."""

    def before_stage(self, stage: str) -> None:
        """Called once, before the plan is read."""

    def after_stage(self, outcome: StageOutcome) -> None:
        """Called once, also when the stage was cancelled or interrupted."""

    def before_item(self, item: WorkItem) -> None:
        """Called before an item's first attempt, in the coordinator."""

    def after_item(self, item: WorkItem, result: Result | None, error: StageError | None) -> None:
        """Called when an item succeeded or failed for good, in the coordinator."""


NO_HOOKS = QuietHooks()

"""The one worker of every stage: make the rows, check them, stage them as a part."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ingest_assets.model.errors import ContractBroken, ItemError
from ingest_assets.model.items import ItemContext, Result, WorkItem
from ingest_assets.stages.stage import Stage, deciding
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.parts import Parts


class OtherRecipe(ItemError):
    """Rows made here would not be those that were planned: they would go by another model's name, say."""

    category = "config"
    code = "E_OTHER_RECIPE"
    retryable = True


@dataclass(frozen=True, slots=True)
class StageWorker:
    """Picklable: only the recipe, what it came to where it was planned, and two names cross to another
    process, on a machine that may have other files and versions."""

    stage: Stage
    home: str
    batch: str
    planned: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        self._require_as_planned()
        rows = self.stage.rows(item, context)
        if rows.num_rows == 0:
            raise ContractBroken(f"{self.stage.name} made no row; every planned item must have at least one.")
        path = Parts(Layout(Path(self.home)), self.stage.spec, self.batch).write(
            item.item_id, item.fingerprint, rows
        )
        return Result(
            rows=rows.num_rows, outputs=(str(path),), counts={**context.counts, "rows": rows.num_rows}
        )

    def _require_as_planned(self) -> None:
        here = deciding(self.stage) if self.planned else {}
        if here != self.planned:
            names = here.keys() | self.planned.keys()
            other = sorted(name for name in names if here.get(name) != self.planned.get(name))
            raise OtherRecipe(
                f"{self.stage.name}: not as planned on this machine: {', '.join(other)}; give every machine "
                "the same models and packages, or run again if they changed meanwhile."
            )

"""The one worker of every stage: make the rows, check them, stage them as a part."""

from dataclasses import dataclass
from pathlib import Path

from ingest_assets.model.errors import ContractBroken
from ingest_assets.model.items import ItemContext, Result, WorkItem
from ingest_assets.stages.stage import Stage
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.parts import Parts


@dataclass(frozen=True, slots=True)
class StageWorker:
    """Picklable: only the recipe and two names cross to another process."""

    stage: Stage
    home: str
    batch: str

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        rows = self.stage.rows(item, context)
        if rows.num_rows == 0:
            raise ContractBroken(f"{self.stage.name} made no row; every planned item must have at least one.")
        path = Parts(Layout(Path(self.home)), self.stage.spec, self.batch).write(
            item.item_id, item.fingerprint, rows
        )
        return Result(
            rows=rows.num_rows, outputs=(str(path),), counts={**context.counts, "rows": rows.num_rows}
        )

"""For stages that weigh documents against others: what their items claim decides how all of them stand."""

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.home import Home
from ingest_assets.intake.alike import Alike
from ingest_assets.intake.claims import Claim, Claims
from ingest_assets.model.admission import NearDuplicateOptions
from ingest_assets.model.items import WorkItem
from ingest_assets.stages.admission import BASIS, AdmissionStage, claim_columns
from ingest_assets.stages.judging.near import band_keys, similarity
from ingest_assets.storage.merging import row_offsets
from ingest_assets.storage.parquet import RowReader
from ingest_assets.storage.parts import Parts
from ingest_assets.storage.tables import existing_table


def settled(
    home: Home, stage: str, batch: str, items: Sequence[WorkItem], plan: Callable[[], list[WorkItem]]
) -> list[WorkItem]:
    """The plan as it is once the batch has claimed its texts; rows whose verdict that changes are decided
    again. Whoever stands differently in other batches has to run again, and the ledger says so; that may be
    this one too, as soon as another has claimed, so nobody plans anew after the rows are decided."""
    recipe = home.stages[stage]
    if not GRAPH[stage].weighs or not isinstance(recipe, AdmissionStage):
        return list(items)
    rows = dict(judged_rows(home, stage, batch))
    current = {item.item_id: item for item in items if _is_of(rows.get(item.item_id), item)}
    near = recipe.options.near_duplicates
    claims = [_claim(item, rows[doc_id], near) for doc_id, item in current.items()]
    Claims(home.ledger).settle(batch, claims, alike_by(recipe))
    again = plan()
    parts = Parts(home.layout, recipe.spec, batch)
    for item in again:
        if item.item_id in current and not item.satisfies():
            parts.write(item.item_id, item.fingerprint, recipe.decided_again(rows[item.item_id], item))
    return again


def alike_by(recipe: AdmissionStage) -> Alike | None:
    """How documents are told to be alike, where that counts."""
    near = recipe.options.near_duplicates
    return Alike(near.threshold, similarity) if near.enabled else None


def judged_rows(home: Home, stage: str, batch: str) -> Iterator[tuple[str, pa.Table]]:
    """The rows that a batch has, by document: those staged come after those in the table, and count."""
    spec = home.stages[stage].spec
    for path, footer in existing_table(home.layout, spec.asset, [batch], allow_missing=True).footers.items():
        reader = RowReader(path)
        try:
            for doc_id, start in row_offsets(footer.items).items():
                yield doc_id, reader.read(start, 1)
        finally:
            reader.close()
    parts = Parts(home.layout, spec, batch)
    for doc_id in parts.records():
        yield doc_id, parts.read(doc_id)


def _is_of(rows: pa.Table | None, item: WorkItem) -> bool:
    return rows is not None and rows["fingerprint"][0].as_py() == item.meta[BASIS]


def _claim(item: WorkItem, rows: pa.Table, near: NearDuplicateOptions) -> Claim:
    said, signature = claim_columns(rows), rows["signature"][0].as_py()
    return Claim(
        doc_id=item.item_id,
        seq=item.meta["seq"],
        basis=item.meta[BASIS],
        text_hash=said["text_hash"],
        is_eligible=said["is_eligible"],
        signature=signature,
        bands=() if signature is None else band_keys(signature, near),
    )

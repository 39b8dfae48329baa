"""Which documents are worth reading by ranges of pages, and the two workers that do it.

One long PDF would keep one worker busy long after the others are done. Its pages can be read by all of them
before its own turn comes, which then only puts them together: the same document, sooner.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ingest_assets.model.items import ItemContext, Result, WorkItem
from ingest_assets.parsing.media import PDF
from ingest_assets.parsing.ranges import PageRange, ranges_of
from ingest_assets.stages.doctags import DoctagsStage
from ingest_assets.stages.documents import read_verified
from ingest_assets.stages.page_store import PageStore, store_range
from ingest_assets.stages.stage import ADOPTS

_RANGE = "range"
_MOST_OF_A_SHARE = 0.5
_SMALL = 64 * 1024  # bytes: too few for enough pages to share


def long_suspects(items: Sequence[WorkItem], workers: int) -> list[WorkItem]:
    """PDFs so large that one of them may be most of what a worker gets to do; at most two per worker."""
    pdfs = [item for item in items if item.meta["mime"] == PDF and ADOPTS not in item.meta]
    share = sum(item.cost_hint for item in pdfs) / workers
    least = max(_SMALL, _MOST_OF_A_SHARE * share)
    return [item for item in pdfs if item.cost_hint > least] if workers > 1 else []


def range_items(counted: Mapping[str, int], items: Sequence[WorkItem], workers: int) -> list[WorkItem]:
    """What to read ahead: the ranges of those documents that have enough pages for several."""
    return [
        _range_item(item, pages, counted[item.item_id] / len(ranges))
        for item in items
        for ranges in [ranges_of(counted.get(item.item_id, 0), workers)]
        if len(ranges) > 1
        for pages in ranges
    ]


def _range_item(item: WorkItem, pages: PageRange, cost: float) -> WorkItem:
    return replace(
        item,
        item_id=f"{item.item_id} pages {pages.first}-{pages.last}",
        output_paths=(str(PageStore(item).path(pages)),),
        meta={**item.meta, _RANGE: pages},
        cost_hint=cost,
    )


@dataclass(frozen=True, slots=True)
class PageCounter:
    """Says how many pages a document has."""

    stage: DoctagsStage

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        with self.stage.reader(context) as reader:
            pages = reader.count_pages(Path(item.meta["path"]), item.meta["name"], item.meta["mime"])
        return Result(counts={"pages": pages})


@dataclass(frozen=True, slots=True)
class RangeReader:
    """Reads one range, unless it is there."""

    stage: DoctagsStage

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        path = Path(item.output_paths[0])
        if context.anew or not path.is_file():
            read_verified(Path(item.meta["path"]), item.meta["content_hash"])
            with self.stage.reader(context) as reader:
                pages = reader.read_pages(
                    Path(item.meta["path"]), item.meta["name"], item.meta["mime"], item.meta[_RANGE]
                )
            store_range(path, pages)
        return Result(outputs=(str(path),))

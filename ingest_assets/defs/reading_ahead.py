"""Before the documents of a run: the pages of those that one worker alone would be too long at."""

from collections.abc import Callable, Sequence

from ingest_assets.backends import KeptBackend
from ingest_assets.model.errors import StageError
from ingest_assets.model.items import Plan, Result, WorkItem
from ingest_assets.model.options import StageOptions
from ingest_assets.model.ports import ExecutionBackend, Progress, Worker
from ingest_assets.runner import QuietHooks, run_stage
from ingest_assets.runner.verdicts import verdict_of
from ingest_assets.stages.doctags import DoctagsStage
from ingest_assets.stages.long_documents import PageCounter, RangeReader, long_suspects, range_items
from ingest_assets.stages.page_store import PageStore
from ingest_assets.stages.stage import Stage


def read_ahead(
    recipe: Stage,
    items: Sequence[WorkItem],
    options: StageOptions,
    backend: ExecutionBackend,
    progress: Progress,
    say: Callable[[str], None],
) -> None:
    """Leaves ranges of pages where the documents' own turn finds them. What fails here, fails there again."""
    if not isinstance(recipe, DoctagsStage) or options.dry_run:
        return
    to_run = [item for item in items if verdict_of(item, options) == "run"]
    suspects = long_suspects(to_run, backend.workers)
    if not suspects:
        return
    counted = _Pages()
    _run(recipe.name, PageCounter(recipe), suspects, options, backend, counted)
    ranges = range_items(counted.pages, suspects, backend.workers)
    if not ranges:
        return
    if options.force:
        for item in suspects:
            PageStore(item).clear()
    documents = len({item.fingerprint for item in ranges})
    say(f"{recipe.name}: long documents first: {documents}, in {len(ranges)} ranges of pages.")
    _run(f"{recipe.name} pages", RangeReader(recipe), ranges, options, backend, QuietHooks(), progress)


def _run(
    name: str,
    worker: Worker,
    items: Sequence[WorkItem],
    options: StageOptions,
    backend: ExecutionBackend,
    hooks: QuietHooks,
    progress: Progress | None = None,
) -> None:
    """No retries, no budget, no manifest: those are for documents."""
    lenient = {"retries": 0, "error_budget": None, "max_failed_share": None, "cancel_on_first_failure": False}
    run_stage(
        Plan(name, items, len(items)),
        worker,
        options.model_copy(update={**lenient, "schedule": "fifo"}),
        hooks,
        backend=KeptBackend(backend),
        progress=progress,
    )


class _Pages(QuietHooks):
    def __init__(self) -> None:
        self.pages: dict[str, int] = {}

    def after_item(self, item: WorkItem, result: Result | None, error: StageError | None) -> None:
        """Remember how many."""
        if result is not None:
            self.pages[item.item_id] = result.counts["pages"]

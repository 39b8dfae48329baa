"""The runs behind `ingest validate`: the same documents, from nothing, once for each way of running."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ingest_assets.cli.runs import RunReport, run_batches
from ingest_assets.cli.summary import failures
from ingest_assets.cli.variants import Variant, settings_of
from ingest_assets.config import settings_to_json
from ingest_assets.defs.home import Home
from ingest_assets.defs.instance import environment
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.scan import ScanLimits, ScanReport
from ingest_assets.intake.watch import WatchedFolder, scan
from ingest_assets.model.errors import IngestError
from ingest_assets.storage.differences import Difference, first_difference, table_hashes
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.locks import FileLock

Status = Literal["base", "equal", "different", "not complete", "not installed"]
_INTAKE = "intake"


@dataclass(frozen=True, slots=True)
class VariantResult:
    """What one way of running came to."""

    variant: Variant
    status: Status
    seconds: float = 0.0
    done: int = 0
    failed: int = 0
    tables: dict[str, str] = field(default_factory=dict)
    difference: Difference | None = None
    why: str = ""
    kept: Path | None = None

    def is_good(self) -> bool:
        """Nothing speaks against this way of running."""
        return self.status in ("base", "equal", "not installed")


@contextlib.contextmanager
def alone(home: Home) -> Iterator[None]:
    """Nobody else validates this home, and what an interrupted validation left is gone."""
    lock = FileLock(home.layout.parity_lock)
    if not lock.try_acquire():
        raise IngestError(f"{home.layout.home}: another `ingest validate` is running here; wait for its end.")
    try:
        shutil.rmtree(home.layout.parity_runs, ignore_errors=True)
        yield
    finally:
        lock.release()


def take_in(home: Home, folder: Path) -> ScanReport:
    """One ledger for all runs: batch keys hold the date, and midnight may pass between two runs."""
    ledger = Ledger(_layout(home, _INTAKE).ledger)
    try:
        limits = ScanLimits(home.settings.batches)
        own = frozenset({home.layout.data, home.layout.state})
        return scan(ledger, [WatchedFolder("input", folder)], limits, own)
    finally:
        ledger.close()


def run_variants(
    home: Home, variants: Sequence[Variant], progress: str, tell: Callable[[VariantResult], None]
) -> list[VariantResult]:
    """Run each and compare it with the first. Stops when the first is not complete.

    A home is removed as soon as its tables are known to be equal, so that the disk holds two of them, and
    those that differ.
    """
    results: list[VariantResult] = []
    base = _layout(home, variants[0].name)
    for variant in variants:
        result = _run(home, variant, base if results else None, progress)
        results.append(result)
        tell(result)
        if result.status == "equal":
            shutil.rmtree(_layout(home, variant.name).home, ignore_errors=True)
        if not results[0].is_good():
            break
    if all(result.is_good() for result in results):
        shutil.rmtree(home.layout.parity_runs, ignore_errors=True)
    return results


def _run(home: Home, variant: Variant, base: Layout | None, progress: str) -> VariantResult:
    if not variant.is_installed:
        return VariantResult(variant, "not installed")
    layout = _layout(home, variant.name)
    layout.ledger.parent.mkdir(parents=True)
    shutil.copy2(_layout(home, _INTAKE).ledger, layout.ledger)
    resource = HomeResource(path=str(layout.home), settings=settings_to_json(settings_of(home, variant)))
    here = resource.open()
    with home_named_as_before(layout):
        report = run_batches(
            here, list(here.graph), {}, reason="validate", progress=progress, resource=resource
        )
    try:
        return _result(here, variant, report, base)
    finally:
        here.ledger.close()


def _result(here: Home, variant: Variant, report: RunReport, base: Layout | None) -> VariantResult:
    assets = [here.serving(stage) for stage in here.graph]
    failed = {failure["doc_id"] for failure in failures(here, report.errors)}
    status: Status = "base" if base is None else "equal"
    why = "; ".join(f"batch {batch}: {reason}" for batch, reason in report.broken.items())
    difference = None
    if why:
        status = "not complete"
    elif base is not None and (difference := first_difference(base, here.layout, assets)) is not None:
        status, why = "different", difference.as_line()
    return VariantResult(
        variant=variant,
        status=status,
        seconds=report.wall_seconds,
        done=_done(here, len(failed), is_complete=not report.broken),
        failed=len(failed),
        tables=table_hashes(here.layout, assets),
        difference=difference,
        why=why,
        kept=here.layout.home if why else None,
    )


def _done(here: Home, failed: int, *, is_complete: bool) -> int:
    """Documents that are through; of a run that stopped, those that have reached the last table."""
    if is_complete:
        return len(here.ledger.documents()) - failed
    return len(here.tables(list(here.graph)[-1]).records)


def _layout(home: Home, name: str) -> Layout:
    return Layout(home.layout.parity_home(name))


@contextlib.contextmanager
def home_named_as_before(layout: Layout) -> Iterator[None]:
    """Opening a Dagster instance says in the environment which home it is; afterwards it says what it did."""
    before = {name: os.environ.get(name) for name in environment(layout)}
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

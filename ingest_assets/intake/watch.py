"""The watched folders of a home: those in the settings and those given on the command line."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ingest_assets.intake.folders import Exclusions, require_folder
from ingest_assets.intake.ledger import Ledger, Source
from ingest_assets.intake.scan import ScanLimits, ScanReport, preview_source, scan_source


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """A folder and what of it is left out."""

    name: str
    path: Path
    exclude: tuple[str, ...] = ()


def register(
    ledger: Ledger, folders: Sequence[WatchedFolder], clock: Callable[[], float] = time.time
) -> None:
    """Make the ledger know the folders of the settings; a folder that moved keeps its documents."""
    known = {source.name: source.path for source in ledger.sources()}
    for folder in folders:
        if known.get(folder.name) != folder.path:
            ledger.put_source(folder.name, folder.path, clock())


def add_folder(
    ledger: Ledger, path: Path, name: str | None = None, clock: Callable[[], float] = time.time
) -> Source:
    """Watch a folder under the name given, or one made from its own, unless it is watched already."""
    folder = require_folder(path)
    return ledger.add_source(folder, _name_from(name or folder.name), clock())


def scan(
    ledger: Ledger,
    folders: Sequence[WatchedFolder],
    limits: ScanLimits,
    not_documents: frozenset[Path] = frozenset(),
) -> ScanReport:
    """Look at every watched folder once; `not_documents` are folders of our own that may lie inside one."""
    register(ledger, folders)
    report = ScanReport()
    started = time.monotonic()
    for source, exclude in _with_exclusions(ledger.sources(), folders, not_documents):
        left = max(0.0, limits.budget_seconds - (time.monotonic() - started))
        scan_source(ledger, source, exclude, replace(limits, budget_seconds=left), report)
    return report


def preview(
    ledger: Ledger,
    folders: Sequence[WatchedFolder],
    limits: ScanLimits,
    not_documents: frozenset[Path] = frozenset(),
) -> ScanReport:
    """What `scan` would find, with nothing written; folders new to the ledger are looked at too."""
    report = ScanReport()
    named = {source.name: source for source in ledger.sources()}
    named |= {folder.name: Source(folder.name, folder.path) for folder in folders}
    for source, exclude in _with_exclusions(list(named.values()), folders, not_documents):
        preview_source(ledger, source, exclude, limits, report)
    return report


def _with_exclusions(
    sources: Sequence[Source], folders: Sequence[WatchedFolder], not_documents: frozenset[Path]
) -> Iterator[tuple[Source, Exclusions]]:
    patterns = {folder.name: folder.exclude for folder in folders}
    for source in sources:
        yield source, Exclusions(patterns.get(source.name, ()), not_documents)


def _name_from(wish: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", wish).strip("-._")[:56] or "folder"

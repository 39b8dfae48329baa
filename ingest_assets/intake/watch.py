"""The watched folders of a home: those in the settings and those given on the command line."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingest_assets.intake.folders import Exclusions, require_folder
from ingest_assets.intake.ledger import Ledger, Source
from ingest_assets.intake.scan import ScanLimits, ScanReport, preview_sources, scan_sources
from ingest_assets.model.errors import ConfigError


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """A folder of the settings, and what of it is left out."""

    name: str
    path: Path
    exclude: tuple[str, ...] = ()


def watched_sources(ledger: Ledger, folders: Sequence[WatchedFolder]) -> list[Source]:
    """Every source as it is to be looked at now, by name.

    A source that was in the settings once and is not any more is left alone: its documents stay as they are.
    """
    named = {source.name: source for source in ledger.sources() if source.origin == "command"}
    named |= {folder.name: Source(folder.name, folder.path, "settings") for folder in folders}
    return [named[name] for name in sorted(named)]


def register(
    ledger: Ledger, folders: Sequence[WatchedFolder], clock: Callable[[], float] = time.time
) -> None:
    """Make the ledger know the folders of the settings; a folder that moved keeps its documents.

    A new place is taken over only when there is a folder: a slip in the settings, or a disk that is not
    mounted, must not send every document's path into the void.
    """
    known = {source.name: source for source in ledger.sources()}
    for source in watched_sources(ledger, folders):
        _require_apart(source, watched_sources(ledger, folders))
        before = known.get(source.name)
        if before != source and (before is None or before.path == source.path or source.path.is_dir()):
            ledger.put_source(source, clock())


def add_folder(
    ledger: Ledger, path: Path, name: str | None = None, clock: Callable[[], float] = time.time
) -> Source:
    """Watch a folder under the name given, or one made from its own, unless it is watched already."""
    folder = require_folder(path)
    known = ledger.sources()
    if all(source.path != folder for source in known):
        _require_apart(Source("", folder), known)
    return ledger.add_source(folder, _name_from(name or folder.name), clock())


def scan(
    ledger: Ledger,
    folders: Sequence[WatchedFolder],
    limits: ScanLimits,
    not_documents: frozenset[Path] = frozenset(),
) -> ScanReport:
    """Look at every watched folder once; `not_documents` are folders of our own that may lie inside one."""
    register(ledger, folders)
    return scan_sources(ledger, _with_exclusions(ledger, folders, not_documents), limits)


def preview(
    ledger: Ledger,
    folders: Sequence[WatchedFolder],
    limits: ScanLimits,
    not_documents: frozenset[Path] = frozenset(),
) -> ScanReport:
    """What `scan` would find, with nothing written; folders new to the ledger are looked at too."""
    return preview_sources(ledger, _with_exclusions(ledger, folders, not_documents), limits)


def _with_exclusions(
    ledger: Ledger, folders: Sequence[WatchedFolder], not_documents: frozenset[Path]
) -> list[tuple[Source, Exclusions]]:
    patterns = {folder.name: folder.exclude for folder in folders}
    return [
        (source, Exclusions(patterns.get(source.name, ()), not_documents))
        for source in watched_sources(ledger, folders)
    ]


def _require_apart(source: Source, others: Sequence[Source]) -> None:
    """Two sources that share files would take in every document twice."""
    for other in others:
        overlaps = source.path.is_relative_to(other.path) or other.path.is_relative_to(source.path)
        if other.name != source.name and overlaps:
            raise ConfigError(
                f"{source.path} and {other.path}, watched as {other.name!r}, share files; "
                "watch only one of them, or use the same name."
            )


def _name_from(wish: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", wish).strip("-._")[:56] or "folder"

"""What a Parquet file says about itself, so that it is understood when every database is lost."""

import functools
import json
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.model.errors import StageError
from ingest_assets.model.identity import canonical_json
from ingest_assets.model.items import Record
from ingest_assets.model.schemas import SCHEMA_VERSION

_PREFIX = "ingest."
_CLOCK_TICK_NS = 1_000_000_000  # the coarsest that file systems keep, but for FAT
_REMEMBERED = 16  # those of a batch, and some; of 500 documents each is an eighth of a MiB
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that could not be done, and the fingerprint with which it failed."""

    fingerprint: str
    error: StageError


@dataclass(frozen=True, slots=True)
class Footer:
    """The self-description of a table: which items it holds, in row order, and which failed."""

    stage_version: str
    config_hash: str
    items: Mapping[str, Record]
    failures: Mapping[str, Failure] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    schema_version: str = SCHEMA_VERSION

    def known_failure(self, item_id: str, fingerprint: str) -> StageError | None:
        """The failure of exactly this item as it is now, if there is one."""
        failure = self.failures.get(item_id)
        return failure.error if failure is not None and failure.fingerprint == fingerprint else None

    def as_metadata(self) -> dict[str, str]:
        """Key-value metadata for the Parquet footer; the same footer gives the same bytes."""
        items = [[item, record.fingerprint, record.rows] for item, record in self.items.items()]
        failures = [
            [item, failure.fingerprint, failure.error.model_dump(mode="json")]
            for item, failure in self.failures.items()
        ]
        known = {
            "schema_version": self.schema_version,
            "stage_version": self.stage_version,
            "config_hash": self.config_hash,
            "items": canonical_json(items),
            "failures": canonical_json(failures),
        }
        return {_PREFIX + key: value for key, value in {**self.extra, **known}.items()}


def read_footer(path: Path, *, often: bool = True) -> Footer | None:
    """The footer of a table or part; None when there is none that this version wrote whole.

    Tables are derived, so a damaged one counts as absent: its items are done again and it is replaced. A file
    that is read `often` is looked into once and remembered until it is another one.
    """
    try:
        state = _state(path) if often else None
        return _read(path) if state is None else _remembered(path, state)
    except FileNotFoundError:
        return None
    except (pa.ArrowInvalid, OSError) as error:
        _log.warning("%s is damaged and will be made again: %s", path, error)
        return None
    except (KeyError, ValueError) as error:
        _log.warning("%s has a footer that cannot be understood and will be made again: %s", path, error)
        return None


def _state(path: Path) -> tuple[int, ...] | None:
    """What tells a file from the one that replaces it; nothing while its clock might show both the same.

    By opening it: what is known of a file by its name may be seconds old where others share the file system.
    """
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
    if time.time_ns() - found.st_ctime_ns < _CLOCK_TICK_NS:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@functools.lru_cache(maxsize=_REMEMBERED)
def _remembered(path: Path, state: tuple[int, ...]) -> Footer | None:
    """By path and state; what cannot be read is tried again."""
    return _read(path)


def _read(path: Path) -> Footer | None:
    return _parse(pq.read_metadata(path).metadata or {})


def _parse(raw: Mapping[bytes, bytes]) -> Footer | None:
    texts = {key.decode(): value.decode() for key, value in raw.items() if key.startswith(_PREFIX.encode())}
    values = {key.removeprefix(_PREFIX): value for key, value in texts.items()}
    if values.pop("schema_version", None) != SCHEMA_VERSION:
        return None
    items = {item: Record(mark, rows) for item, mark, rows in json.loads(values.pop("items"))}
    failures = {
        item: Failure(mark, StageError.model_validate(error))
        for item, mark, error in json.loads(values.pop("failures"))
    }
    return Footer(values.pop("stage_version"), values.pop("config_hash"), items, failures, values)

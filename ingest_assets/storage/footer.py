"""What a Parquet file says about itself, so that it is understood when every database is lost."""

import json
import logging
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


def read_footer(path: Path) -> Footer | None:
    """The footer of a table or part; None when there is none that this version wrote whole.

    Tables are derived, so a damaged one counts as absent: its items are done again and it is replaced.
    """
    try:
        raw = pq.read_metadata(path).metadata or {}
    except FileNotFoundError:
        return None
    except (pa.ArrowInvalid, OSError) as error:
        _log.warning("%s is damaged and will be made again: %s", path, error)
        return None
    try:
        return _parse(raw)
    except (KeyError, ValueError) as error:
        _log.warning("%s has a footer that cannot be understood and will be made again: %s", path, error)
        return None


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

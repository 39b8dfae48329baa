"""Prove equal bytes: the same documents, from nothing, once for each way of running."""

import contextlib
import itertools
import json
import re
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.app.driver import Executor, RunReport, run_batches
from ingest_assets.app.home import Home, open_home
from ingest_assets.app.report import failures
from ingest_assets.backends import Kind, kind_of, workers_for
from ingest_assets.backends.ray import import_ray
from ingest_assets.core.errors import ConfigError, IngestError
from ingest_assets.core.identity import canonical_json, hash_file
from ingest_assets.core.layout import Layout
from ingest_assets.embedders.torch import has_cuda
from ingest_assets.intake.folders.scan import ScanLimits, ScanReport, WatchedFolder, scan
from ingest_assets.intake.folders.walk import require_folder
from ingest_assets.intake.ledger import Ledger
from ingest_assets.settings.execution import StageOptions
from ingest_assets.settings.tree import Settings
from ingest_assets.storage.locks import FileLock
from ingest_assets.storage.parquet import RowReader

KINDS: tuple[Kind, ...] = ("inline", "threads", "processes", "ray")
_WORKERS = (1, 2, 4)
_WORKERS_ON_RAY = (1, 2)
_MOST_WORKERS = 256
# A failure is a result to compare, and one of the samples fails on purpose.
NO_BUDGET = {"error_budget": None, "max_failed_share": None, "cancel_on_first_failure": False}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of running every stage."""

    kind: Kind
    workers: int
    is_installed: bool = True
    note: str = ""

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.kind}-{self.workers}"


INLINE = Variant("inline", 1)


def choose_variants(home: Home, only: str | None, workers: str | None) -> list[Variant]:
    """What to run, in order: inline first, because it is what the others are compared with."""
    kinds = _kinds(only)
    numbers = _numbers(workers)
    chosen = [INLINE]
    for kind in kinds:
        note = "gpu stages on threads" if kind == "processes" and _keeps_gpu_on_threads(home) else ""
        is_installed = kind != "ray" or has_ray()
        chosen += [Variant(kind, n, is_installed, note) for n in numbers or _usual_numbers(home, kind)]
    return chosen


def has_ray() -> bool:
    """True when the extra `ray` is installed."""
    return find_spec("ray") is not None


def settings_of(home: Home, variant: Variant) -> Settings:
    """The home's settings with every stage run this way; sources are left out, the documents are given.

    Folders are as this home finds them: the variant's home is elsewhere. Nothing is remembered: vectors that
    one variant has made would stand for those of the next, and prove nothing.
    """
    settings = home.settings_elsewhere()
    families = settings.embeddings
    forgetful = families.cache.model_copy(update={"enabled": False})
    stages = {stage: _options_of(home.options(stage), variant) for stage in home.graph}
    features = {"parallel": True, "require_parity": False}
    return settings.model_copy(
        update={
            "stages": settings.stages.model_copy(update=stages),
            "embeddings": families.model_copy(update={"cache": forgetful}),
            "features": settings.features.model_copy(update=features),
        }
    )


def _options_of(options: StageOptions, variant: Variant) -> StageOptions:
    """What the stage claims of a cluster stays; where it runs, and on how many workers, is the variant's."""
    kind: Kind = variant.kind
    if kind == "processes" and options.policy == "gpu" and has_cuda():
        kind = "threads"
    where = {
        "backend": "ray" if kind == "ray" else "local",
        "run_on": "auto" if kind == "ray" else kind,
        "max_workers": 0,
        "dangerous_gpu_processes": kind == "processes",
    }
    execution = options.execution.model_copy(update=where)
    changes = {"workers": variant.workers, "execution": execution}
    return options.model_copy(update=changes | NO_BUDGET)


def _keeps_gpu_on_threads(home: Home) -> bool:
    return any(home.options(stage).policy == "gpu" for stage in home.graph) and has_cuda()


def _usual_numbers(home: Home, kind: Kind) -> Sequence[int]:
    """One, two, four, and the number that this home would choose by itself."""
    usual = _WORKERS_ON_RAY if kind == "ray" else _WORKERS
    own = _own_number(home, on_ray=kind == "ray")
    return sorted({*usual, own})


def _own_number(home: Home, *, on_ray: bool) -> int:
    """The most workers of a stage that computes; threads that wait for a disk or a model are no measure."""
    if not home.settings.features.parallel or (on_ray and not has_ray()):
        return 1
    options = [home.options(stage) for stage in home.graph]
    computing = [each for each in options if each.policy == "cpu" and (kind_of(each) == "ray") == on_ray]
    return max((workers_for(each)[0] for each in computing), default=1)


def _kinds(only: str | None) -> list[Kind]:
    if only is None:
        return [kind for kind in KINDS if kind != "inline"]
    names = _words(only)
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        raise ConfigError(f"--only: no such backend: {unknown[0]}; known are {', '.join(KINDS)}.")
    kinds: list[Kind] = [kind for kind in KINDS if kind in names and kind != "inline"]
    if not kinds:
        raise ConfigError(
            "--only: inline is what the others are compared with; name one of threads, processes, ray too."
        )
    if "ray" in kinds:
        import_ray()
    return kinds


def _numbers(workers: str | None) -> list[int]:
    """Exactly the numbers that were asked for; none when nothing was."""
    if workers is None:
        return []
    words = _words(workers)
    if not words or not all(re.fullmatch(r"[0-9]{1,3}", w) and 1 <= int(w) <= _MOST_WORKERS for w in words):
        raise ConfigError(
            f"--workers: should be numbers from 1 to {_MOST_WORKERS}, as in 1,2,4; got {workers!r}."
        )
    return sorted({int(word) for word in words})


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+", text) if word]


# Where two homes' tables differ first: for people who must find out why equal inputs gave other bytes.


_ROWS_AT_ONCE = 64
_SHOWN_CHARS = 60
_LISTS = ("ingest.items", "ingest.failures")


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a table is not as expected; `row` counts from 0, `column` names what differs."""

    asset: str
    batch: str
    what: str
    expected: str = ""
    found: str = ""
    row: int | None = None
    column: str | None = None

    def as_line(self) -> str:
        """One line for a person."""
        place = f"{self.asset} {self.batch}: "
        if self.row is not None:
            place += f"row {self.row}, "
        values = f": {self.expected} expected, {self.found} found" if self.expected or self.found else ""
        return f"{place}{self.what}{values}"


def table_hashes(layout: Layout, assets: Sequence[str]) -> dict[str, str]:
    """sha256 of every table, by `<asset>/<batch>`, assets in the order given."""
    return {
        f"{asset}/{batch}": hash_file(layout.table(asset, batch))[0]
        for asset in assets
        for batch in _batches(layout, asset)
    }


def first_difference(expected: Layout, found: Layout, assets: Sequence[str]) -> Difference | None:
    """By asset in the order given, then batch, footer, row and column; None when every byte is equal."""
    for asset in assets:
        for batch in sorted({*_batches(expected, asset), *_batches(found, asset)}):
            paths = expected.table(asset, batch), found.table(asset, batch)
            difference = _between_files(Difference(asset, batch, ""), *paths)
            if difference is not None:
                return difference
    return None


def _batches(layout: Layout, asset: str) -> list[str]:
    return sorted(path.stem for path in layout.asset_folder(asset).glob("*.parquet"))


def _between_files(at: Difference, expected: Path, found: Path) -> Difference | None:
    there = ["a table" if path.is_file() else "none" for path in (expected, found)]
    if "none" in there:
        return _differs(at, "table", *there)
    if hash_file(expected)[0] == hash_file(found)[0]:
        return None
    try:
        same_rows = replace(at, what="same rows, different encoding")
        return _between_footers(at, expected, found) or _between_rows(at, expected, found) or same_rows
    except (pa.ArrowInvalid, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return replace(at, what=f"table cannot be read ({reason})")


def _between_footers(at: Difference, expected: Path, found: Path) -> Difference | None:
    one, other = _footer(expected), _footer(found)
    for key in sorted({*one, *other}):
        values = one.get(key, "nothing"), other.get(key, "nothing")
        if values[0] != values[1]:
            is_list = key in _LISTS and key in one and key in other
            return _differs(at, f"footer {key}", *(_first_entries(*values) if is_list else values))
    schemas = pq.read_schema(expected), pq.read_schema(found)
    return None if schemas[0] == schemas[1] else _differs(at, "schema", str(schemas[0]), str(schemas[1]))


def _footer(path: Path) -> dict[str, str]:
    metadata = pq.read_metadata(path).metadata or {}
    return {key.decode(): value.decode() for key, value in metadata.items() if key.startswith(b"ingest.")}


def _first_entries(expected: str, found: str) -> tuple[str, str]:
    """Of two lists of items, the first entries that differ."""
    for one, other in itertools.zip_longest(json.loads(expected), json.loads(found)):
        if one != other:
            return _entry(one), _entry(other)
    return expected, found


def _entry(entry: Any) -> str:
    return "nothing" if entry is None else canonical_json(entry)


def _between_rows(at: Difference, expected: Path, found: Path) -> Difference | None:
    counts = [pq.read_metadata(path).num_rows for path in (expected, found)]
    with closing(RowReader(expected)) as left, closing(RowReader(found)) as right:
        for start in range(0, min(counts), _ROWS_AT_ONCE):
            rows = min(_ROWS_AT_ONCE, min(counts) - start)
            difference = _between_tables(at, start, left.read(start, rows), right.read(start, rows))
            if difference is not None:
                return difference
    return None if counts[0] == counts[1] else _differs(at, "number of rows", *map(str, counts))


def _between_tables(at: Difference, start: int, one: pa.Table, other: pa.Table) -> Difference | None:
    """The first row that differs, and of its columns the first in the schema's order."""
    unequal = [
        (row, number)
        for number, pair in enumerate(zip(one.columns, other.columns, strict=True))
        if (row := _first_unequal(*pair)) is not None
    ]
    if not unequal:
        return None
    row, number = min(unequal)
    name, values = one.column_names[number], [table.column(number)[row].as_py() for table in (one, other)]
    column, values = _innermost(name, values)
    return replace(_differs(at, f"column {column}", *map(repr, values)), row=start + row, column=column)


def _first_unequal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> int | None:
    """The first row in which two columns of equal length differ by as much as a bit."""
    left, right = _as_bits(one.combine_chunks()), _as_bits(other.combine_chunks())
    if left.equals(right):
        return None
    low, high = 0, len(left) - 1  # the first difference is at `low` or after it, and not after `high`
    while low < high:
        middle = (low + high) // 2
        length = middle + 1 - low
        if left.slice(low, length).equals(right.slice(low, length)):
            low = middle + 1
        else:
            high = middle
    return low


def _as_bits(array: pa.Array) -> pa.Array:
    """Floats as whole numbers: zeros of either sign differ, and NaN is equal to itself."""
    kind = array.type
    if pa.types.is_floating(kind):
        return array.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width])
    if pa.types.is_fixed_size_list(kind) and not array.null_count:
        return pa.FixedSizeListArray.from_arrays(_as_bits(array.flatten()), kind.list_size)
    if pa.types.is_list(kind) and not array.null_count:
        return pa.ListArray.from_arrays(array.offsets, _as_bits(array.values))
    return array


def _innermost(name: str, values: list[Any]) -> tuple[str, list[Any]]:
    """For lists, the first element that differs: `vector[17]`."""
    if all(isinstance(value, list) for value in values):
        for at, pair in enumerate(zip(*values, strict=False)):
            if _bytes(pair[0]) != _bytes(pair[1]):
                return f"{name}[{at}]", list(pair)
    return name, values


def _bytes(value: Any) -> bytes:
    return struct.pack("<d", value) if isinstance(value, float) else repr(value).encode()


def _differs(at: Difference, what: str, *texts: str) -> Difference:
    """Both values, short, from a little before where they part."""
    pairs = enumerate(zip(*texts, strict=False))
    parting = next((place for place, (one, other) in pairs if one != other), min(map(len, texts)))
    start = max(0, parting - _SHOWN_CHARS // 3) if max(map(len, texts)) > _SHOWN_CHARS else 0
    one, other = (_cut(text, start) for text in texts)
    return replace(at, what=what, expected=one, found=other)


def _cut(text: str, start: int) -> str:
    end = start + _SHOWN_CHARS
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


# The runs behind `ingest validate`: the same documents, from nothing, once for each way of running.


# What runs the batches of a home whose settings are given.
Executing = Callable[[Home], contextlib.AbstractContextManager[Executor]]
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
    folder = require_folder(folder)
    ledger = Ledger(_layout(home, _INTAKE).ledger)
    try:
        limits = ScanLimits(home.settings.batches)
        own = frozenset({home.layout.data, home.layout.state})
        return scan(ledger, [WatchedFolder("input", folder)], limits, own)
    finally:
        ledger.close()


def run_variants(
    home: Home, variants: Sequence[Variant], executing: Executing, tell: Callable[[VariantResult], None]
) -> list[VariantResult]:
    """Run each and compare it with the first. Stops when the first is not complete.

    A home is removed as soon as its tables are known to be equal, so that the disk holds two of them, and
    those that differ.
    """
    results: list[VariantResult] = []
    base = _layout(home, variants[0].name)
    for variant in variants:
        result = _run(home, variant, base if results else None, executing)
        results.append(result)
        tell(result)
        if result.status == "equal":
            shutil.rmtree(_layout(home, variant.name).home, ignore_errors=True)
        if not results[0].is_good():
            break
    if all(result.is_good() for result in results):
        shutil.rmtree(home.layout.parity_runs, ignore_errors=True)
    return results


def _run(home: Home, variant: Variant, base: Layout | None, executing: Executing) -> VariantResult:
    if not variant.is_installed:
        return VariantResult(variant, "not installed")
    layout = _layout(home, variant.name)
    layout.ledger.parent.mkdir(parents=True)
    shutil.copy2(_layout(home, _INTAKE).ledger, layout.ledger)
    here = open_home(layout.home, settings=settings_of(home, variant))
    with executing(here) as executor:
        report = run_batches(here, list(here.graph), {}, executor, reason="validate")
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

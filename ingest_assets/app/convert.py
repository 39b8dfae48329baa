"""`convert`: read documents from Python, without a home, a database or Dagster."""

import stat
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from ingest_assets.backends import Kind, open_backend, workers_for
from ingest_assets.core.errors import (
    ConfigError,
    DocumentMissing,
    DocumentUnreadable,
    ItemError,
    NotAFile,
    StageError,
)
from ingest_assets.core.items import ItemContext
from ingest_assets.core.ports import ExecutionBackend
from ingest_assets.parsing.engines import choose_engine
from ingest_assets.parsing.media import HEAD_BYTES, media_type
from ingest_assets.parsing.reader import ParsedDocument
from ingest_assets.runner.attempt import error_record
from ingest_assets.settings.execution import ExecutionOptions, StageOptions
from ingest_assets.settings.parsing import ParsingOptions
from ingest_assets.settings.tree import StagesSettings
from ingest_assets.stages.doctags import DoctagsStage

if TYPE_CHECKING:
    from docling_core.types.doc import DoclingDocument

# Files submitted ahead of the one that the caller waits for, per worker: enough to keep all workers busy.
_AHEAD_PER_WORKER = 4


@dataclass(frozen=True, slots=True)
class Converted:
    """The result of one file: `parsed`, or the `error`."""

    path: Path
    parsed: ParsedDocument | None = None
    error: StageError | None = None

    @property
    def ok(self) -> bool:
        """True if the file was read."""
        return self.error is None

    @property
    def document(self) -> "DoclingDocument":
        """The Docling document. Raises `ValueError` for a file that was not read."""
        from docling_core.types.doc import DoclingDocument

        if self.parsed is None:
            raise ValueError(f"{self.path} was not read: {self.error.message if self.error else 'no result'}")
        return DoclingDocument.model_validate_json(self.parsed.document)

    @property
    def markdown(self) -> str:
        """The document as Markdown. Raises `ValueError` for a file that was not read."""
        return str(self.document.export_to_markdown())


def convert(
    paths: Iterable[str | Path] | str | Path,
    *,
    backend: Kind | ExecutionBackend = "processes",
    workers: int = 0,
    timeout_s: float = 900.0,
    parsing: ParsingOptions | None = None,
) -> Iterator[Converted]:
    """Read files and yield one result per path, in order; a file that fails does not stop the others.

    `backend` is a name or an open backend, which stays open. `workers` 0 = chosen from cores and memory.
    Only processes and Ray stop a file that hangs or crashes; `timeout_s` 0 = no limit. Paths are taken
    from the iterable as workers become free. Scripts need `if __name__ == "__main__":` around the call.
    """
    files = [paths] if isinstance(paths, str | Path) else paths
    options = parsing or ParsingOptions()
    stage = DoctagsStage(options, choose_engine(options))
    if not isinstance(backend, str):
        return _convert(files, stage, backend, timeout_s)
    if backend not in get_args(Kind):
        raise ConfigError(f"backend: expected {', '.join(get_args(Kind))} or a backend; got {backend!r}.")
    return _convert_on(_options(backend, workers), files, stage, timeout_s)


def _options(backend: Kind, workers: int) -> StageOptions:
    """Return the defaults of `[stages.doctags]` on a backend."""
    where = ExecutionOptions(backend="ray") if backend == "ray" else ExecutionOptions(run_on=backend)
    defaults = StagesSettings().doctags.model_dump()
    return StageOptions.model_validate({**defaults, "workers": workers, "execution": where})


def _convert_on(
    options: StageOptions, files: Iterable[str | Path], stage: DoctagsStage, timeout_s: float
) -> Iterator[Converted]:
    count, _reason = workers_for(options)
    opened = open_backend(options, count, stage.preload, lambda _line: None)
    try:
        yield from _convert(files, stage, opened, timeout_s)
    finally:
        opened.close()


def _convert(
    files: Iterable[str | Path], stage: DoctagsStage, backend: ExecutionBackend, timeout_s: float
) -> Iterator[Converted]:
    ahead = 1 if backend.is_inline else backend.workers * _AHEAD_PER_WORKER
    jobs: deque[tuple[Path, str]] = deque()
    for path in map(Path, files):
        jobs.append((path, backend.submit(partial(_read, path, stage, backend.workers), timeout_s)))
        if len(jobs) >= ahead:
            yield _result(backend, *jobs.popleft())
    while jobs:
        yield _result(backend, *jobs.popleft())


def _result(backend: ExecutionBackend, path: Path, job_id: str) -> Converted:
    try:
        return Converted(path, backend.get_result(job_id))
    except ItemError as error:
        return Converted(path, error=error_record(error, stage="convert", item_id=str(path)))


def _read(path: Path, stage: DoctagsStage, workers: int) -> ParsedDocument:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would block
            raise NotAFile(f"{path} is not a regular file. Pass the files of a folder one by one.")
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except FileNotFoundError:
        raise DocumentMissing(f"{path} does not exist.") from None
    except OSError as error:
        raise DocumentUnreadable(f"Cannot read {path}: {error.strerror}. Check its permissions.") from None
    with stage.reader(ItemContext(workers=workers)) as reader:
        return reader.read(path, path.name, media_type(path.name, head))

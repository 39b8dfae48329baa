"""The SQLite file of a run before it has events: made by Dagster for the first one, copied for later ones.

Dagster reads all its migrations for every new file, which takes longer than most steps of a small run.
"""

import contextlib
import os
import uuid
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Engine, inspect, text

_EMPTY: list[bytes] = []  # the file's content, once there is one


def make_run_file(engine: Engine, make: Callable[[], None]) -> None:
    """Bring a run's file into being with `make`, or by a copy; one that is made stays as it is."""
    path = Path(engine.url.database or "")
    if _EMPTY and not path.exists():
        _put(path, _EMPTY[0])
    is_new = not path.exists()
    if is_new or not _is_made(engine):
        make()
    if is_new:
        _EMPTY[:] = [_content(engine)]


def _is_made(engine: Engine) -> bool:
    """True when Dagster has noted a version in the file; it does so at the end of making it."""
    if not inspect(engine).has_table("alembic_version"):
        return False
    with engine.connect() as connection:
        return connection.execute(text("SELECT version_num FROM alembic_version")).first() is not None


def _content(engine: Engine) -> bytes:
    with contextlib.closing(engine.raw_connection()) as connection:
        return connection.driver_connection.serialize()  # type: ignore[union-attr]


def _put(path: Path, content: bytes) -> None:
    """The file is there whole or not at all, and one that another process has made meanwhile stays.

    Not at all where the file system knows no links.
    """
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with scratch.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(OSError):
            os.link(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)

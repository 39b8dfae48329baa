"""Tables that cannot be read: found, named, and put aside so that the next run makes them anew."""

import contextlib
import errno
import shutil
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.model.errors import TableDamaged
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.locks import FileLock

# Arrow's own complaints have no number. Others (no right to read, too many open files, a file that is gone)
# say all there is to say, and nothing is wrong with the bytes.
_TELLS_OF_THE_BYTES = (None, errno.EIO, errno.EBADMSG, errno.EISDIR)


@contextlib.contextmanager
def naming_damage(path: Path) -> Iterator[None]:
    """Reading, and only reading, tells of a damaged file; a full disk while writing must remove nothing."""
    try:
        yield
    except pa.ArrowMemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) not in _TELLS_OF_THE_BYTES:
            raise
        raise TableDamaged.at(path, error) from error


def require_whole(paths: Iterable[Path]) -> None:
    """Read all of the files, for those whom an error has told of one of them."""
    for path in paths:
        with naming_damage(path), pq.ParquetFile(path) as stored:
            for group in range(stored.num_row_groups):
                stored.read_row_group(group)


def put_aside(layout: Layout, path: Path) -> Path | None:
    """Move a damaged table of a home into quarantine, and give where it is now.

    Nothing happens to one that somebody works at, or that proves to be whole: it was replaced meanwhile, or a
    disk that was out of reach is back.
    """
    place = path.relative_to(layout.data)
    lock = FileLock(layout.lock(place.parent.as_posix(), place.stem))
    if not lock.try_acquire():
        return None
    try:
        require_whole([path])
    except TableDamaged:
        return moved_away(layout, path)
    except FileNotFoundError:  # somebody else has put it aside
        return None
    finally:
        lock.release()
    return None


def moved_away(layout: Layout, path: Path) -> Path:
    """The same for who holds the table's lock and knows that it is damaged."""
    place = path.relative_to(layout.data)
    room = layout.quarantine(place.parent.as_posix(), place.stem)
    room.mkdir(parents=True, exist_ok=True)
    names = (room / f"damaged-{number:04d}.parquet" for number in count(1))
    kept = next(name for name in names if not name.exists())
    shutil.move(path, kept)
    return kept

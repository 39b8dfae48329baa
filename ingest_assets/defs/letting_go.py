"""When a stage is stopped: items that were given up keep what they have got, and end."""

import logging
import threading
import time
from collections.abc import Callable

from ingest_assets.model.ports import ExecutionBackend
from ingest_assets.runner.attempt import caught
from ingest_assets.stages.stage import Stage

LONGEST_S = 2.0
_LOOK_AGAIN_S = 0.02
_log = logging.getLogger(__name__)


def let_go(recipe: Stage, backend: ExecutionBackend) -> None:
    """Have the recipe close what threads that were given up wait for, and wait a little for their end.

    A thread cannot be killed; but one whose embedder is closed keeps the vectors that it was given by then,
    which may have been paid for.
    """
    close = getattr(recipe, "let_go", None)
    if close is None or not backend.abandoned:
        return
    closing = threading.Thread(target=_close, args=(recipe.name, close), daemon=True)
    closing.start()
    ends_at = time.monotonic() + LONGEST_S
    while (closing.is_alive() or backend.abandoned) and time.monotonic() < ends_at:
        time.sleep(_LOOK_AGAIN_S)


def _close(name: str, close: Callable[[], None]) -> None:
    """What a package's provider raises here must not hide why the stage was stopped."""
    _, error = caught(close)
    if error is not None:
        _log.warning("%s: closing what was open raised %s: %s", name, type(error).__name__, error)

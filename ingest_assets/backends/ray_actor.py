"""What runs on a Ray cluster: a supervisor that keeps one warm worker process and answers for it.

The item runs in a process below the actor, not in the actor. So an item that hangs is killed at its limit and
one that crashes is named with its signal, by the same code and in the same words as on one machine; and when
the actor itself ends, that was never the item's doing.
"""

import contextlib
import os
import socket
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any

from ingest_assets.backends.processes import ProcessBackend
from ingest_assets.model.errors import ItemCancelled, ItemError, SubmitFailed
from ingest_assets.model.identity import code_version

MAX_LINES = 200


class Supervisor:
    """One worker slot of a stage, somewhere on the cluster. `stay` and `run` run at the same time."""

    def __init__(
        self, preload: Sequence[str], environment: Mapping[str, str], max_mebibytes: int = 0
    ) -> None:
        if "OMP_NUM_THREADS" not in environment:  # Ray sets it; native code would count threads differently
            os.environ.pop("OMP_NUM_THREADS", None)
        os.environ.update(environment)
        self._output = _Output()
        self._backend = ProcessBackend(1, preload, start_method="spawn", max_mebibytes=max_mebibytes)

    def ready(self) -> tuple[str, str]:
        """Where this worker is, and which code it has."""
        import ray

        place = f"{socket.gethostname()} (node {ray.get_runtime_context().get_node_id()[:8]})"
        return place, code_version()

    def stay(self) -> None:
        """Never returns: the call fails when the actor ends, and so its owner hears of it at once."""
        threading.Event().wait()

    def run(self, blob: bytes, timeout_s: float) -> tuple[Any, ItemError | None, list[str]]:
        """The call's value or how it ended, and what was printed meanwhile.

        A backend that broke down here makes this actor useless: it ends, and its owner starts another.
        """
        try:
            return self._backend.submit_pickled(blob, timeout_s).result(), None, self._output.take()
        except (ItemCancelled, CancelledError, SubmitFailed):
            os._exit(1)
        except ItemError as error:
            return None, error, self._output.take()


class _Output:
    """Everything this process and its worker print: copied to Ray's own log, the last lines kept."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._original = os.dup(2)
        reading, writing = os.pipe()
        for stream in (1, 2):
            os.dup2(writing, stream)
        os.close(writing)
        threading.Thread(target=self._copy, args=(reading,), name="ingest-output", daemon=True).start()

    def take(self) -> list[str]:
        """The lines since the last time."""
        lines = []
        with contextlib.suppress(IndexError):
            while True:
                lines.append(self._lines.popleft())
        return lines

    def _copy(self, reading: int) -> None:
        with os.fdopen(reading, "rb", buffering=0) as output:
            rest = b""
            while piece := output.read(65536):
                with contextlib.suppress(OSError):
                    os.write(self._original, piece)
                *lines, rest = (rest + piece).split(b"\n")
                self._lines.extend(line.decode("utf-8", "replace").rstrip() for line in lines)

"""The life of one worker process: behave, get ready, answer until the coordinator is gone.

It runs in the worker and is light on purpose: what an item needs is imported by the item or by `preload`.
"""

import contextlib
import fcntl
import gc
import importlib
import os
import pickle
import select
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection

READY = b"ready"
STARTED = b"started"


def serve(
    connection: Connection, lifeline: Connection, preload: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Answer calls one after the other; return when the coordinator closes the pipe."""
    gc.freeze()  # what came with the fork stays for good: looking through it again would only copy its pages
    gc.enable()
    _behave()
    _adopt(environment)
    _end_with_coordinator(lifeline.fileno())
    for module in preload:
        with contextlib.suppress(ImportError, OSError):  # the item that needs it will say so itself
            importlib.import_module(module)
    own_pid = os.getpid()
    with contextlib.suppress(EOFError, OSError):  # the coordinator left, or the item closed our files
        connection.send_bytes(READY)
        while True:
            blob = connection.recv_bytes()
            connection.send_bytes(STARTED)
            call, item, context = pickle.loads(blob)
            answer = pickle.dumps(call(item, context))
            if os.getpid() != own_pid:  # the item forked, and this is the copy that came back
                os._exit(0)
            connection.send_bytes(answer)


def _behave() -> None:
    """Leave Ctrl-C to the coordinator and standard output to its owner."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # so that whatever an item starts can be killed with it
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    sys.stdout = sys.stderr


def _adopt(environment: Mapping[str, str]) -> None:
    """The coordinator's variables as they are now: the fork server may be older than their last change."""
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)


def _end_with_coordinator(lifeline: int) -> None:
    """Nobody writes into the lifeline; it hangs up when the coordinator ends, however that ends.

    On Linux the kernel then kills this process and what it started, even while native code keeps the
    interpreter locked. Elsewhere, and should that fail, a thread does it.
    """
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    threading.Thread(target=_watch, args=(lifeline,), name="ingest-lifeline", daemon=True).start()


def _watch(lifeline: int) -> None:
    poll = select.poll()
    poll.register(lifeline, 0)  # hang-ups only
    poll.poll()
    with contextlib.suppress(OSError):
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)

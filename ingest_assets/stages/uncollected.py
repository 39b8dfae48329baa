"""Work that makes thousands of small objects, while nobody looks through them for garbage."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """No collection of garbage meanwhile, in all threads; for one item's work, never for a whole run."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

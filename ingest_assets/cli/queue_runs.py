"""`ingest queue run`: acquire and ingest what is queued, with limits of its own."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ingest_assets.cli.corpus import refresh_corpus
from ingest_assets.cli.draining import Drain
from ingest_assets.cli.ingest import print_result, progress_mode, result_object
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.cli.queue_state import queue_object
from ingest_assets.defs.execution import refuse_early
from ingest_assets.defs.home import Home, open_home
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.model.errors import ConfigError
from ingest_assets.model.options import QueueOptions

_RESOLVERS = "max_per_resolver"


@dataclass(frozen=True, slots=True)
class Limits:
    """Of this command alone; what is None is as configured."""

    workers: int | None = None
    per_host: int | None = None
    per_resolver: str | None = None


def run_queue(limits: Limits, home: Path | None, *, waits: bool, as_json: bool) -> int:
    """Acquire, ingest, report; gives the exit code."""
    _limit(home, limits)
    here = open_home(home, makes_no_ledger=True)  # without a ledger nothing is queued, and none is made
    _ = here.stages
    refuse_early(here, list(here.graph), StageRunConfig(**{}))
    report = Drain(here, warn, waits=waits, progress=progress_mode(as_json)).run()
    refresh_corpus(here, report)
    result = {"queue": queue_object(here), **result_object(here, None, report)}
    if as_json:
        print_json(result)
    elif not any(result["queue"]["states"].values()):
        say("Nothing was ever queued here; `ingest queue import FILE.jsonl` takes a list.")
    else:
        print_result(result)
    return int(result["exit_code"])


def _limit(home: Path | None, limits: Limits) -> None:
    """Limits of this command, as variables: the steps read the settings for themselves."""
    given = {"max_workers": limits.workers, "max_per_host": limits.per_host}
    for name, value in given.items():
        if value is not None:
            _override(name, str(value))
    if limits.per_resolver is not None:
        _override(_RESOLVERS, json.dumps(_merged_caps(open_home(home), limits.per_resolver)))


def _merged_caps(home: Home, given: str) -> dict[str, int]:
    """The caps as configured, but for those given as `a:2,b:4`."""
    pairs = [part.strip().rpartition(":") for part in given.split(",")]
    try:
        wanted = QueueOptions.model_validate({_RESOLVERS: {name: cap for name, _, cap in pairs}})
    except ValidationError:
        raise ConfigError(
            f"--max-per-resolver: should name resolvers, each with a number from 1: a:2,b:4; got {given!r}."
        ) from None
    return {**home.settings.queue.max_per_resolver, **wanted.max_per_resolver}


def _override(name: str, value: str) -> None:
    """Alone, whatever the spelling: names of variables are read in any case, and a map also key by key."""
    variable = f"INGEST_QUEUE__{name.upper()}"
    for known in list(os.environ):
        if known.upper() == variable or known.upper().startswith(f"{variable}__"):
            del os.environ[known]
    os.environ[variable] = value

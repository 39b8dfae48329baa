"""`ingest queue run`: acquire and ingest what is queued, with limits of its own."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from ingest_assets.cli import flags
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

WorkersFlag = Annotated[
    int | None, typer.Option("--workers", min=1, max=256, help="Artifacts acquired at the same time.")
]
PerHostFlag = Annotated[
    int | None, typer.Option("--max-per-host", min=1, help="Of one host at the same time.")
]
PerResolverFlag = Annotated[
    str | None,
    typer.Option(
        "--max-per-resolver", metavar="a:2,b:4", help="Of these resolvers; others stay as configured."
    ),
]
DrainFlag = Annotated[
    bool, typer.Option("--drain", help="Wait for what is delayed or held by others, until nothing is left.")
]


def run(
    workers: WorkersFlag = None,
    max_per_host: PerHostFlag = None,
    max_per_resolver: PerResolverFlag = None,
    drain: DrainFlag = False,
    home: flags.HomeFlag = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """Acquire what is queued and ingest it, as far as it is due; with --drain, until nothing is left.

    Limits hold over all processes of a home, each with its own idea of them: give all of them the same."""
    _limit(home, workers, max_per_host, max_per_resolver)
    here = open_home(home, makes_no_ledger=True)  # without a ledger nothing is queued, and none is made
    _ = here.stages
    refuse_early(here, list(here.graph), StageRunConfig(**{}))
    report = Drain(here, warn, waits=drain, progress=progress_mode(as_json)).run()
    refresh_corpus(here, report)
    result = {"queue": queue_object(here), **result_object(here, None, report)}
    if as_json:
        print_json(result)
    elif not any(result["queue"]["states"].values()):
        say("Nothing was ever queued here; `ingest queue import FILE.jsonl` takes a list.")
    else:
        print_result(result)
    raise typer.Exit(int(result["exit_code"]))


def _limit(home: Path | None, workers: int | None, max_per_host: int | None, resolvers: str | None) -> None:
    """Limits of this command, as variables: the steps read the settings for themselves."""
    given = {"max_workers": workers, "max_per_host": max_per_host}
    for name, value in given.items():
        if value is not None:
            _override(name, str(value))
    if resolvers is not None:
        _override(_RESOLVERS, json.dumps(_merged_caps(open_home(home), resolvers)))


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

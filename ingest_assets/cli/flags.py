"""The flags that several commands share, each described once."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ingest_assets.cli.output import say
from ingest_assets.core.items import Step


def _enable_experimental(value: bool) -> bool:
    """A variable, because the servers that a command starts must hear of it too."""
    if value:
        os.environ["INGEST_FEATURES__EXPERIMENTAL"] = "true"
    return value


HomeFlag = Annotated[
    Path | None,
    typer.Option(
        "--home",
        readable=False,
        help="Home folder with data/ and state/ (default: INGEST_HOME, or this project).",
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
InputFlag = Annotated[
    Path | None,
    # Ours to check: Typer would only say that it is not readable, and not what to do.
    typer.Option("--input", readable=False, help="Folder with documents; watched by this home from now on."),
]
FromFlag = Annotated[Step, typer.Option("--from", help="First stage to run.")]
UntilFlag = Annotated[Step, typer.Option("--until", help="Last stage to run.")]
WorkersFlag = Annotated[
    int | None,
    typer.Option("--workers", min=0, max=256, help="Documents at a time per stage; 0 = automatic."),
]
RetriesFlag = Annotated[
    int | None, typer.Option("--retries", min=0, max=20, help="Further attempts after a passing fault.")
]
TimeoutFlag = Annotated[
    float | None,
    typer.Option("--timeout-s", min=0, help="Seconds one document may take per stage; 0 = no limit."),
]
ExperimentalFlag = Annotated[
    bool,
    typer.Option(
        "--enable-experimental",
        callback=_enable_experimental,
        help="Allow what is not proved yet, as features.experimental does.",
    ),
]
DryRunFlag = Annotated[bool, typer.Option("--dry-run", help="Say what would be done and touch nothing.")]
DocArgument = Annotated[str, typer.Argument(metavar="DOC", help="A document id, or the end of one.")]


def group(help_text: str) -> typer.Typer:
    """A group that lists its commands when none is given."""
    app = typer.Typer(help=help_text, add_completion=False)

    def help_alone(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            say(context.get_help())

    app.callback(invoke_without_command=True)(help_alone)
    return app

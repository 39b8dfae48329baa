"""Flags that several commands share."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ingest_assets.cli.output import say
from ingest_assets.core.items import Step


def _enable_experimental(value: bool) -> bool:
    """Set a variable, because the servers that a command starts must read it too."""
    if value:
        os.environ["INGEST_FEATURES__EXPERIMENTAL"] = "true"
    return value


HomeFlag = Annotated[
    Path | None,
    typer.Option(
        "--home",
        readable=False,
        help="Home folder with data/ and state/ (default: INGEST_HOME, else the nearest home from the "
        "current folder upwards).",
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
InputFlag = Annotated[
    Path | None,
    # Checked in `app`: Typer would only say that it is not readable, not what to do.
    typer.Option("--input", readable=False, help="Folder with documents; the home watches it from now on."),
]
FromFlag = Annotated[Step, typer.Option("--from", help="First stage to run.")]
UntilFlag = Annotated[Step, typer.Option("--until", help="Last stage to run.")]
WorkersFlag = Annotated[
    int | None,
    typer.Option("--workers", min=0, max=256, help="Documents in parallel per stage; 0 = automatic."),
]
RetriesFlag = Annotated[
    int | None, typer.Option("--retries", min=0, max=20, help="Retries after a temporary error.")
]
TimeoutFlag = Annotated[
    float | None,
    typer.Option("--timeout-s", min=0, help="Time limit for one document at a stage, in seconds; 0 = none."),
]
ExperimentalFlag = Annotated[
    bool,
    typer.Option(
        "--enable-experimental",
        callback=_enable_experimental,
        help="Enable experimental features (features.experimental).",
    ),
]
DryRunFlag = Annotated[bool, typer.Option("--dry-run", help="Show what would be done. Changes nothing.")]
DocArgument = Annotated[
    str, typer.Argument(metavar="DOC", help="A document id, the end of one, or a file's absolute path.")
]


def group(help_text: str) -> typer.Typer:
    """Return a command group that prints its help when called without a command."""
    app = typer.Typer(help=help_text, add_completion=False, rich_markup_mode=None)

    def help_alone(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            say(context.get_help())

    app.callback(invoke_without_command=True)(help_alone)
    return app

"""The flags that several commands share, each described once."""

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ingest_assets.cli.interrupts import PRESSES
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
ResumeFlag = Annotated[
    bool, typer.Option("--resume/--no-resume", help="Skip documents that are already done.")
]
ForceFlag = Annotated[
    bool, typer.Option("--force", help="Do every document again; old parts go to quarantine.")
]
WorkersFlag = Annotated[
    int | None,
    typer.Option("--workers", min=0, max=256, help="Documents at a time per stage; 0 = automatic."),
]
PolicyFlag = Annotated[
    Literal["io", "cpu", "gpu"] | None, typer.Option("--policy", help="Threads (io, gpu) or processes (cpu).")
]
BackendFlag = Annotated[
    Literal["local", "ray"] | None, typer.Option("--backend", help="This machine, or a Ray cluster.")
]
RunOnFlag = Annotated[
    Literal["auto", "inline", "threads", "processes"] | None,
    typer.Option("--run-on", help="On local: by policy, one by one in the step itself, threads, processes."),
]
RetriesFlag = Annotated[
    int | None, typer.Option("--retries", min=0, max=20, help="Further attempts after a passing fault.")
]
TimeoutFlag = Annotated[
    float | None,
    typer.Option("--timeout-s", min=0, help="Seconds one document may take per stage; 0 = no limit."),
]
BudgetFlag = Annotated[
    int | None, typer.Option("--error-budget", min=0, help="Stop a stage after this many failed documents.")
]
QueueFlag = Annotated[
    int | None, typer.Option("--max-queue", min=1, help="Documents planned ahead of the workers.")
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


# What groups of commands share: help when called alone, and flags that several of their commands take.


def group(help_text: str) -> typer.Typer:
    """A group that lists its commands when none is given."""
    app = typer.Typer(help=help_text)

    def help_alone(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            say(context.get_help())

    app.callback(invoke_without_command=True)(help_alone)
    return app


def taking(shared: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function with the flags of `shared` before its own; what `shared` makes of them comes first."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        flags = list(inspect.signature(shared).parameters.values())
        own = list(inspect.signature(function).parameters.values())[1:]

        def called(**values: Any) -> Any:
            of_shared = {flag.name: values.pop(flag.name) for flag in flags}
            return function(shared(**of_shared), **values)

        called.__signature__ = inspect.Signature([*flags, *own])  # type: ignore[attr-defined]
        called.__name__, called.__doc__ = function.__name__, function.__doc__
        return called

    return decorate


# From the flags of a command to what it does, which needs libraries that take seconds to load.


@contextlib.contextmanager
def libraries(home: Path | None = None) -> Iterator[None]:
    """Around the imports of a command on a home; a slip in its settings is answered before them."""
    _require_good_settings(home)
    with PRESSES.ending_at_once():
        yield


def _require_good_settings(home: Path | None) -> None:
    """Of a home that is there; one that is not is explained by who opens it."""
    from ingest_assets.settings.read import home_folder, read_settings

    folder = (home or home_folder()).expanduser()
    if folder.is_dir():
        read_settings(folder.resolve())

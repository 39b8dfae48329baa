"""The flags that several commands share, each described once."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from ingest_assets.model.steps import Step


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

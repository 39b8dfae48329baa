"""`ingest validate | up | demo`."""

from pathlib import Path
from typing import Annotated

import typer

from ingest_assets.cli.commands import flags
from ingest_assets.cli.commands.flags import libraries

InputFlag = Annotated[
    Path | None,
    typer.Option(
        "--input", readable=False, help="Folder with documents to use instead of the shipped samples."
    ),
]
OnlyFlag = Annotated[
    str | None,
    typer.Option("--only", help="Backends to compare with inline, as in threads,processes (default: all)."),
]
WorkersFlag = Annotated[
    str | None,
    typer.Option(
        "--workers", help="Numbers of workers, as in 1,2,4 (default: these and the home's own; on Ray 1,2)."
    ),
]
PortFlag = Annotated[int, typer.Option("--port", min=1, max=65535, help="Port of the web UI.")]
DemoHomeFlag = Annotated[Path, typer.Option("--home", help="Home folder of the demo.")]


def validate(
    home: flags.HomeFlag = None,
    input: InputFlag = None,
    only: OnlyFlag = None,
    workers: WorkersFlag = None,
    experimental: flags.ExperimentalFlag = False,
    as_json: flags.JsonFlag = False,
) -> None:
    """Run documents inline, on threads, on processes and on Ray, and compare every byte of every table.

    Everything is computed once per backend and number of workers, in homes of their own below
    state/parity; your own tables are not touched. When all are equal, a record of it is kept, which
    features.require_parity asks for.
    """
    with libraries(home):
        from ingest_assets.cli.validate import validate as compare
    raise typer.Exit(compare(home, input, only, workers, as_json=as_json))


def up(
    home: flags.HomeFlag = None,
    port: PortFlag = 3000,
    experimental: flags.ExperimentalFlag = False,
    as_json: flags.JsonFlag = False,
) -> None:
    """Start the web UI and the daemon (sensor, schedule, run queue) on 127.0.0.1; Ctrl-C stops both."""
    with libraries(home):
        from ingest_assets.cli.up import serve
    raise typer.Exit(serve(home, port, as_json=as_json))


def demo(home: DemoHomeFlag = Path("demo"), as_json: flags.JsonFlag = False) -> None:
    """Ingest the shipped samples. One is broken on purpose and must be the only failure; two are rejected."""
    with libraries(home):
        from ingest_assets.cli.demo import ingest_samples
    raise typer.Exit(ingest_samples(home, as_json=as_json))

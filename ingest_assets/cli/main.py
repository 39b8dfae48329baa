"""The `ingest` command: composition of its subcommands, and the one place where errors become exit codes."""

import os
import sys
from typing import Any

import typer

from ingest_assets.cli.commands.evaluating import app as eval_app
from ingest_assets.cli.commands.failures import app as failures_app
from ingest_assets.cli.commands.looking import doctor, inspect, status
from ingest_assets.cli.commands.models import app as models_app
from ingest_assets.cli.commands.proving import demo, up, validate
from ingest_assets.cli.commands.queue import app as queue_app
from ingest_assets.cli.commands.running import plan, run_command
from ingest_assets.cli.interrupts import INTERRUPTED, PRESSES
from ingest_assets.cli.output import warn
from ingest_assets.model.errors import ConfigError, IngestError
from ingest_assets.model.steps import STEPS

_HELP = """Documents in, vectors out: doctags, chunks and embeddings as Parquet, through Dagster.

Start with `ingest all --input FOLDER`; run it again at any time, only what changed is computed.
`ingest up` opens the web UI on the same data. Exit codes: 0 all good, 1 finished with failures,
2 wrong usage or settings, 130 interrupted (what is finished is kept)."""

_RUNS = "Stages that are already current are skipped, so this costs only what changed."

# Typer carries its own click; its exceptions are reached through the one that Typer exports.
ClickError: type[Exception] = typer.BadParameter.__bases__[0].__bases__[0]

app = typer.Typer(help=_HELP, pretty_exceptions_enable=False)
app.command("all")(run_command(STEPS[-1], f"Run every stage: documents to embeddings. {_RUNS}"))
app.command("doctags")(run_command("doctags", f"Run up to doctags: read the documents. {_RUNS}"))
app.command("chunk")(run_command("chunks", f"Run up to chunks: cut the documents. {_RUNS}"))
app.command("embed")(run_command("embeddings", f"Run up to the embeddings of every family. {_RUNS}"))
app.command("plan")(plan)
app.command("status")(status)
app.command("inspect")(inspect)
app.add_typer(queue_app, name="queue")
app.add_typer(failures_app, name="failures")
app.add_typer(models_app, name="models")
app.command("validate")(validate)
app.add_typer(eval_app, name="eval")
app.command("doctor")(doctor)
app.command("up")(up)
app.command("demo")(demo)


def main() -> None:
    """Run the command line; bad input ends in one clear line. SIGTERM ends it as Ctrl-C does."""
    PRESSES.listen()
    try:
        code = run(sys.argv[1:])
        PRESSES.stop_raising()
    except KeyboardInterrupt:  # while the last words were said
        code = INTERRUPTED
    sys.stdout.flush()
    sys.stderr.flush()
    if code == INTERRUPTED or PRESSES.count:
        os._exit(code)  # an abandoned thread may be deep in native code, which aborts a normal exit
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code."""
    try:
        code = typer.main.get_command(app).main(
            arguments or ["--help"], prog_name="ingest", standalone_mode=False
        )
        if code == INTERRUPTED:
            warn("ingest: interrupted; finished documents are kept, the next run continues.")
        return int(code or 0)
    except ClickError as error:
        return _explain_usage(error)
    except ConfigError as error:
        warn(f"ingest: {error}")
        return 2
    except (IngestError, OSError) as error:
        warn(f"ingest: {error}")
        return 1


def _explain_usage(error: Any) -> int:
    context = getattr(error, "ctx", None)
    warn(f"ingest: {error.format_message()} Try `{context.command_path if context else 'ingest'} --help`.")
    return 2

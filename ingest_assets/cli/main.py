"""The `ingest` command: composition of its subcommands, and the one place where errors become exit codes."""

import contextlib
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
from ingest_assets.cli.output import flush_streams, prepare_streams, print_json, warn
from ingest_assets.core.errors import ConfigError, IngestError
from ingest_assets.core.items import STEPS

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
    prepare_streams()
    PRESSES.listen()
    try:
        code = run(sys.argv[1:])
        PRESSES.stop_raising()
    except KeyboardInterrupt:  # while the last words were said
        code = INTERRUPTED
    except SystemExit as ended:  # a shell was answered, or nobody reads on
        code = ended.code if isinstance(ended.code, int) else 0
    code = flush_streams() or code
    if code == INTERRUPTED or PRESSES.count:
        os._exit(code)  # an abandoned thread may be deep in native code, which aborts a normal exit
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code."""
    try:
        code = typer.main.get_command(app).main(
            arguments or ["--help"], prog_name="ingest", standalone_mode=False
        )
    except ClickError as error:
        return _ended(2, _usage(error), arguments)
    except ConfigError as error:
        return _ended(2, str(error), arguments)
    except IngestError as error:
        return _ended(1, str(error), arguments)
    except OSError as error:
        return _ended(1, _of_the_system(error), arguments)
    if code == INTERRUPTED:
        return _ended(code, "interrupted; finished documents are kept, the next run continues.", arguments)
    return int(code or 0)


def _ended(code: int, why: str, arguments: list[str]) -> int:
    """A command that has no result says why, to people and programs alike."""
    warn(f"ingest: {why}")
    if "--json" in arguments:
        with contextlib.suppress(OSError):  # the output may be what is wrong, and that has just been said
            print_json({"error": why, "exit_code": code})
    return code


def _of_the_system(error: OSError) -> str:
    """What, where, what to do."""
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}; check the path, its permissions and the disk."


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"{error.format_message()} Try `{context.command_path if context else 'ingest'} --help`."

"""The `ingest` command: the table of its commands, and the one place where errors become exit codes."""

import contextlib
import importlib
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from ingest_assets.cli.output import flush_streams, prepare_streams, print_json, warn
from ingest_assets.cli.signals import INTERRUPTED, PRESSES
from ingest_assets.core.errors import ConfigError, IngestError

_HELP = """Documents in, vectors out: doctags, chunks and embeddings as Parquet, through Dagster.

Start with `ingest all --input FOLDER`; run it again at any time, only what changed is computed.
`ingest up` opens the web UI on the same data. Exit codes: 0 all good, 1 finished with failures,
2 wrong usage or settings, 130 interrupted (what is finished is kept)."""

_RUNS = "Stages that are already current are skipped, so this costs only what changed."

# Each command: its function, or the Typer of a group, in a module of this room; and its line in
# `ingest --help`, which is the first paragraph of its own help (a test compares the two).
COMMANDS = {
    "all": ("run:run_all", f"Run every stage: documents to embeddings. {_RUNS}"),
    "doctags": ("run:run_doctags", f"Run up to doctags: read the documents. {_RUNS}"),
    "chunk": ("run:run_chunk", f"Run up to chunks: cut the documents. {_RUNS}"),
    "embed": ("run:run_embed", f"Run up to the embeddings of every family. {_RUNS}"),
    "plan": ("plan:plan", "Say what a run would do and how long it would take, and touch nothing."),
    "status": (
        "status:status",
        "Show sources, batches, totals and failures; with --documents, how far each document is.",
    ),
    "inspect": (
        "inspect:inspect",
        "Show one document: where it came from, how it was read, its chunks and its vectors.",
    ),
    "validate": (
        "validate:validate",
        "Run documents inline, on threads, on processes and on Ray, and compare every byte of every table.",
    ),
    "doctor": (
        "doctor:doctor",
        "Check Python, libraries, models, settings, folders and the Dagster instance.",
    ),
    "up": (
        "up:up",
        "Start the web UI and the daemon (sensor, schedule, run queue) on 127.0.0.1; Ctrl-C stops both.",
    ),
    "demo": (
        "demo:demo",
        "Ingest the shipped samples. One is broken on purpose and must be the only failure; "
        "two are rejected.",
    ),
    "queue": (
        "queue:app",
        "Documents from URLs and lists: put them in, see what became of them, run them.",
    ),
    "failures": (
        "failures:app",
        "What could not be done, over every stage: look at it, try it again, or let the next run do so.",
    ),
    "models": (
        "models:app",
        "The models that read documents and make vectors: which are here, and fetching them.",
    ),
    "eval": ("eval:app", "Quality reports: what comes out, measured against what should."),
}

# Typer carries its own click; its exceptions are reached through the one that Typer exports.
ClickError: type[Exception] = typer.BadParameter.__bases__[0].__bases__[0]


def load_command(name: str) -> Any:
    """A command of the table, from its module. Typer turns each of them into a command of its click."""
    module, attribute = COMMANDS[name][0].split(":")
    with PRESSES.ending_at_once():
        found = getattr(importlib.import_module(f"ingest_assets.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        function, found = found, typer.Typer(add_completion=False)
        found.command(name)(function)
    return typer.main.get_command(found)


class CommandsOnDemand(TyperGroup):
    """Knows all commands by name and help line, and imports the one that is called or completed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command of these arguments, no longer its stand-in; None for an unknown one in a completion."""
        name, stand_in, rest = super().resolve_command(ctx, args)
        return name, stand_in and load_command(stand_in.name or ""), rest


def _stand_in() -> None:
    """Of a command that is not loaded: for the list of commands and the completion of their names."""


app = typer.Typer(cls=CommandsOnDemand, help=_HELP, pretty_exceptions_enable=False)
for _name, (_, _line) in COMMANDS.items():
    app.command(_name, help=_line)(_stand_in)


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
    """Run one command and give its exit code: what the command returns, nothing being zero."""
    try:
        code = typer.main.get_command(app).main(
            arguments or ["--help"], prog_name="ingest", standalone_mode=False
        )
    except ClickError as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "ingest"
        return _ended(2, f"{error.format_message()} Try `{command} --help`.", arguments)  # type: ignore[attr-defined]
    except ConfigError as error:
        return _ended(2, str(error), arguments)
    except IngestError as error:
        return _ended(1, str(error), arguments)
    except OSError as error:
        why = str(error)
        if error.filename is not None and error.strerror is not None:
            why = f"{error.filename}: {error.strerror}; check the path, its permissions and the disk."
        return _ended(1, why, arguments)
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

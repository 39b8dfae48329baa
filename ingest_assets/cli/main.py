"""The `ingest` command: the table of its commands, and the place where errors become exit codes."""

import contextlib
import importlib
import os
import re
import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ingest_assets.cli.output import flush_streams, prepare_streams, print_json, say, warn
from ingest_assets.cli.signals import INTERRUPTED, INTERRUPTS
from ingest_assets.core.errors import ConfigError, IngestError

_HELP = """Turn documents into doctags, chunks and embeddings: Parquet tables, computed by Dagster.

Start with `ingest all --input FOLDER`. Run it again at any time: only changes are computed.
`ingest up` starts the web UI on the same data. Exit codes: 0 success, 1 finished with failures,
2 invalid usage or settings, 130 interrupted (finished documents are kept)."""

_SKIPS_DONE = "Documents that are already done are skipped."

# Each command: its function, or the Typer app of a group, in a module of this package; and its line in
# `ingest --help`, which is the first paragraph of its own help (a test compares the two).
COMMANDS = {
    "all": ("run:run_all", f"Run all stages, from documents to embeddings. {_SKIPS_DONE}"),
    "doctags": ("run:run_doctags", f"Run the stages up to doctags: read the documents. {_SKIPS_DONE}"),
    "chunk": ("run:run_chunk", f"Run the stages up to chunks: read and chunk the documents. {_SKIPS_DONE}"),
    "embed": ("run:run_embed", f"Run all stages up to embeddings, like `ingest all`. {_SKIPS_DONE}"),
    "plan": ("plan:plan", "Show what a run would do and how long it would take. Changes nothing."),
    "status": (
        "status:status",
        "Show sources, batches, totals and failures; with --documents, the last stage of each document.",
    ),
    "inspect": (
        "inspect:inspect",
        "Show one document: its source, how it was read, the admission verdict and its chunks.",
    ),
    "validate": (
        "validate:validate",
        "Run documents inline, on threads, processes and Ray, and check that all tables are byte-equal.",
    ),
    "doctor": (
        "doctor:doctor",
        "Check Python, libraries, models, settings, folders and the Dagster instance.",
    ),
    "up": (
        "up:up",
        "Start the web UI and the daemon (sensors, schedule, run queue) on 127.0.0.1; Ctrl-C stops both.",
    ),
    "demo": (
        "demo:demo",
        "Ingest the samples. One is broken on purpose and must be the only failure; two must be rejected.",
    ),
    "watch": ("watch:app", "List, add and remove the folders that a home watches."),
    "queue": (
        "queue:app",
        "Queue documents from URLs and lists, show their state, and ingest them.",
    ),
    "failures": (
        "failures:app",
        "List the failures of all stages, retry them, or release them for the next run.",
    ),
    "models": (
        "models:app",
        "List the models for reading and embedding documents, and download them.",
    ),
    "eval": ("eval:app", "Measure the quality of parsing and retrieval."),
}

# Typer vendors click; its exceptions are reached through the one that Typer exports.
ClickError: type[Exception] = typer.BadParameter.__bases__[0].__bases__[0]


def load_command(name: str) -> Any:
    """Import a command of the table and return it as a click command."""
    module, attribute = COMMANDS[name][0].split(":")
    with INTERRUPTS.exiting_at_once():
        command = getattr(importlib.import_module(f"ingest_assets.cli.{module}"), attribute)
    if not isinstance(command, typer.Typer):
        function, command = command, typer.Typer(add_completion=False, rich_markup_mode=None)
        command.command(name)(function)
    return typer.main.get_command(command)


class LazyCommands(TyperGroup):
    """A group that lists its commands from the table and imports the one that is called or completed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Replace the placeholder by the real command; None for an unknown command in a completion."""
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, placeholder and load_command(placeholder.name or ""), rest


def _placeholder() -> None:
    """Stand for a command that is not imported, in the list of commands and in completion."""


_CONTEXT = {"help_option_names": ["-h", "--help"]}  # of the commands below, too
# Rich's help has frames and narrow columns that cut the names of flags on 80 characters.
app = typer.Typer(
    cls=LazyCommands,
    help=_HELP,
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
    rich_markup_mode=None,
)
for _name, (_, _line) in COMMANDS.items():
    app.command(_name, help=_line)(_placeholder)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        say(f"ingest {version('ingest-assets')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line. Errors are printed as one line; SIGTERM works like Ctrl-C."""
    prepare_streams()
    INTERRUPTS.listen()
    try:
        code = run(sys.argv[1:])
        INTERRUPTS.stop_raising()
    except KeyboardInterrupt:  # while the result was printed
        code = INTERRUPTED
    except SystemExit as end:  # shell completion, or the reader closed the pipe
        code = end.code if isinstance(end.code, int) else 0
    code = flush_streams() or code
    if code == INTERRUPTED or INTERRUPTS.count:
        os._exit(code)  # an abandoned thread may be deep in native code, which aborts a normal exit
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; a command that returns None has succeeded."""
    try:
        code = typer.main.get_command(app).main(
            arguments or ["--help"], prog_name="ingest", standalone_mode=False
        )
    except ClickError as error:
        return _fail(2, _usage_line(error), arguments)
    except ConfigError as error:
        return _fail(2, str(error), arguments)
    except IngestError as error:
        return _fail(1, str(error), arguments)
    except OSError as error:
        reason = str(error)
        if error.filename is not None and error.strerror is not None:
            reason = f"{error.filename}: {error.strerror}; check the path, its permissions and the disk."
        return _fail(1, reason, arguments)
    if code == INTERRUPTED:
        return _fail(code, f"interrupted; finished documents are kept, {_next_run(arguments)}.", arguments)
    return int(code or 0)


def _next_run(arguments: list[str]) -> str:
    return "repeat --force to recompute the rest" if "--force" in arguments else "the next run continues"


def _usage_line(error: Any) -> str:
    """Return what is wrong with the arguments, and where the right ones are listed."""
    command = error.ctx.command_path if getattr(error, "ctx", None) else "ingest"
    message = error.format_message().rstrip(".")
    extra = re.fullmatch(r"Got unexpected extra arguments?(?:\(s\))? \((.+)\)", message)
    if extra and command.endswith((" all", " doctags", " chunk", " embed", " plan")):
        return f"{message}. A folder goes after --input: `{command} --input {extra[1]}`."
    if getattr(error, "option_name", "") == "--home" and command == "ingest":
        return f"{message}. It goes after the command: `ingest status --home FOLDER`."
    return f"{message}{'' if message.endswith('?') else '.'} Try `{command} --help`."


def _fail(code: int, reason: str, arguments: list[str]) -> int:
    """Print why the command has no result, with --json as an object too, and return the exit code."""
    warn(f"ingest: {reason}")
    if "--json" in arguments:
        with contextlib.suppress(OSError):  # the error may be about standard output itself
            print_json({"error": reason, "exit_code": code})
    return code

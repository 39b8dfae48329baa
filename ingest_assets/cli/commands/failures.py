"""`ingest failures list | show | retry | release`."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ingest_assets.cli.commands import flags
from ingest_assets.cli.commands.flags import group, libraries, taking
from ingest_assets.core.errors import Category

app = group("What could not be done, over every stage: look at it, try it again, or let the next run do so.")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which failures to act on: documents, filters by their names, or all of them."""

    documents: list[str]
    filters: dict[str, Any]
    takes_all: bool


DocsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[DOC]...", help="Document ids, or the ends of them.")
]
StageFlag = Annotated[
    str | None, typer.Option("--stage", help="Only failures of this stage, such as doctags.")
]
CategoryFlag = Annotated[Category | None, typer.Option("--category", help="Only failures of this kind.")]
SourceFlag = Annotated[
    str | None, typer.Option("--source", help="Only documents of this source; queue = what was queued.")
]
BatchFlag = Annotated[str | None, typer.Option("--batch", help="Only documents of this batch.")]
AllFlag = Annotated[bool, typer.Option("--all", help="Every failure there is.")]


def _filters(
    stage: StageFlag = None,
    category: CategoryFlag = None,
    source: SourceFlag = None,
    batch: BatchFlag = None,
) -> dict[str, Any]:
    return {"stage": stage, "category": category, "source": source, "batch": batch}


@taking(_filters)
def _choice(filters: dict[str, Any], documents: DocsArgument = None, every: AllFlag = False) -> Choice:
    return Choice(documents or [], filters, every)


@app.command("list")
@taking(_filters)
def list_command(
    filters: dict[str, Any], home: flags.HomeFlag = None, as_json: flags.JsonFlag = False
) -> None:
    """List failures, newest first: document, stage, code, category, attempts, message."""
    with libraries(home):
        from ingest_assets.cli.failures import list_failures
    list_failures(filters, home, as_json=as_json)


@app.command("show")
def show_command(
    document: flags.DocArgument, home: flags.HomeFlag = None, as_json: flags.JsonFlag = False
) -> None:
    """Show one document's failures: the errors, every attempt, its file, and what to do next."""
    with libraries(home):
        from ingest_assets.cli.failures import show_failures
    show_failures(document, home, as_json=as_json)


@app.command("retry")
@taking(_choice)
def retry_command(
    choice: Choice,
    home: flags.HomeFlag = None,
    workers: flags.WorkersFlag = None,
    retries: flags.RetriesFlag = None,
    timeout_s: flags.TimeoutFlag = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """Try failed documents again now, through all stages; other failed documents stay as they are."""
    with libraries(home):
        from ingest_assets.cli.failures import retry_failures
    config = {"workers": workers, "retries": retries, "per_item_timeout_s": timeout_s}
    given = {name: value for name, value in config.items() if value is not None}
    raise typer.Exit(retry_failures(choice, given, home, as_json=as_json))


@app.command("release")
@taking(_choice)
def release_command(choice: Choice, home: flags.HomeFlag = None, as_json: flags.JsonFlag = False) -> None:
    """Forget failures and run nothing: the next run of any kind tries those documents again."""
    with libraries(home):
        from ingest_assets.cli.failures import release_failures
    release_failures(choice, home, as_json=as_json)

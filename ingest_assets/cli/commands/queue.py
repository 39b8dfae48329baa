"""`ingest queue enqueue | import | run | stats | retry-failed | refresh`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ingest_assets.cli.commands import flags
from ingest_assets.cli.commands.flags import group, libraries
from ingest_assets.core.errors import Category

app = group("Documents from URLs and lists: put them in, see what became of them, run them.")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Stable and unique; becomes the doc_id.")]
UrlFlag = Annotated[str | None, typer.Option("--url", help="An http or https address.")]
PathFlag = Annotated[Path | None, typer.Option("--path", readable=False, help="A file.")]
ResolverFlag = Annotated[
    str | None, typer.Option("--resolver", help="Who acquires it (default: http or file).")
]
MetaFlag = Annotated[str | None, typer.Option("--meta", metavar="JSON", help="An object kept with it.")]
ListArgument = Annotated[
    Path, typer.Argument(metavar="FILE.jsonl", readable=False, help="One JSON object a line; - = stdin.")
]
LimitFlag = Annotated[int | None, typer.Option("--limit", min=1, help="Only so many lines from the front.")]
FormatFlag = Annotated[Literal["table", "json"], typer.Option("--format", help="For people or programs.")]
CategoryFlag = Annotated[Category | None, typer.Option("--category", help="Only errors of this kind.")]
ResetFlag = Annotated[
    bool, typer.Option("--reset-attempts", help="With all their attempts again, in place of one more.")
]
IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Default: all.")]
DaysFlag = Annotated[
    float, typer.Option("--older-than-days", min=0, help="Only what was acquired so long ago.")
]
HostFlag = Annotated[str | None, typer.Option("--host", help="Only of this host.")]
OfResolverFlag = Annotated[str | None, typer.Option("--resolver", help="Only of this resolver.")]
WorkersFlag = Annotated[
    int | None, typer.Option("--workers", min=1, max=256, help="Artifacts acquired at the same time.")
]
PerHostFlag = Annotated[
    int | None, typer.Option("--max-per-host", min=1, help="Of one host at the same time.")
]
PerResolverFlag = Annotated[
    str | None,
    typer.Option(
        "--max-per-resolver", metavar="a:2,b:4", help="Of these resolvers; others stay as configured."
    ),
]
DrainFlag = Annotated[
    bool, typer.Option("--drain", help="Wait for what is delayed or held by others, until nothing is left.")
]


@app.command("enqueue")
def enqueue_command(
    artifact_id: IdArgument,
    url: UrlFlag = None,
    path: PathFlag = None,
    resolver: ResolverFlag = None,
    meta: MetaFlag = None,
    home: flags.HomeFlag = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """Queue one artifact; one whose id is known stays as it is."""
    with libraries(home):
        from ingest_assets.cli.queueing import enqueue
    enqueue(artifact_id, url, path, resolver, meta, home, as_json=as_json)


@app.command("import")
def import_command(
    file: ListArgument,
    limit: LimitFlag = None,
    home: flags.HomeFlag = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """Queue a list of artifacts; bad lines are named by their numbers and cost none of the others.

    A line is {"id"?, "url" or "path", "resolver"?, "meta"?, "max_attempts"?, "not_before"?}. Without an id, a
    page is known by its URL. Relative paths start at the list's folder. A list can be imported again."""
    with libraries(home):
        from ingest_assets.cli.queueing import import_list
    raise typer.Exit(import_list(file, limit, home, as_json=as_json))


@app.command("stats")
def stats_command(
    form: FormatFlag = "table", home: flags.HomeFlag = None, as_json: flags.JsonFlag = False
) -> None:
    """Show the queue in figures: states, waits, who is busy, quotas, and totals since the ledger began."""
    with libraries(home):
        from ingest_assets.cli.queueing import show_stats
    show_stats(home, as_json=as_json or form == "json")


@app.command("retry-failed")
def retry_failed_command(
    category: CategoryFlag = None,
    reset_attempts: ResetFlag = False,
    dry_run: flags.DryRunFlag = False,
    home: flags.HomeFlag = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """Queue artifacts again that ended in an error."""
    with libraries(home):
        from ingest_assets.cli.queueing import retry_failed
    retry_failed(category, home, reset_attempts=reset_attempts, dry_run=dry_run, as_json=as_json)


@app.command("refresh")
def refresh_command(
    ids: IdsArgument = None,
    older_than_days: DaysFlag = 0.0,
    host: HostFlag = None,
    resolver: OfResolverFlag = None,
    home: flags.HomeFlag = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """Look again at acquired artifacts: what changed is ingested anew, the rest costs one request each."""
    with libraries(home):
        from ingest_assets.cli.queueing import refresh
    refresh(ids or [], older_than_days, host, resolver, home, as_json=as_json)


@app.command("run")
def run_command(
    workers: WorkersFlag = None,
    max_per_host: PerHostFlag = None,
    max_per_resolver: PerResolverFlag = None,
    drain: DrainFlag = False,
    home: flags.HomeFlag = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """Acquire what is queued and ingest it, as far as it is due; with --drain, until nothing is left.

    Limits hold over all processes of a home, each with its own idea of them: give all of them the same."""
    with libraries(home):
        from ingest_assets.cli.queueing import Limits, run_queue
    limits = Limits(workers, max_per_host, max_per_resolver)
    raise typer.Exit(run_queue(limits, home, waits=drain, as_json=as_json))

"""`ingest queue`: queue documents, import lists, show statistics, retry, refresh and run."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import typer
from pydantic import ValidationError

from ingest_assets.app.driver import RunReport, StageTotals, finish, require_ready
from ingest_assets.app.execution import RunOptions
from ingest_assets.app.home import open_home
from ingest_assets.app.queue_run import (
    ArtifactList,
    Drain,
    Filter,
    ImportReport,
    Retried,
    new_artifact,
    parsed_object,
    queue_object,
    stats_object,
)
from ingest_assets.cli.flags import DryRunFlag, HomeFlag, JsonFlag, group
from ingest_assets.cli.output import grid, print_json, say, warn
from ingest_assets.cli.run import executing, print_result, progress_mode, result_object
from ingest_assets.cli.signals import INTERRUPTS
from ingest_assets.core.errors import Category, ConfigError
from ingest_assets.settings.intake import QueueOptions

MAX_SHOWN = 20  # malformed lines of a list; more would push the totals off the screen
_NEXT = "Start it with `ingest queue run`, or let `ingest up` do it."

app = group("Queue documents from URLs and lists, show their state, and ingest them.")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A stable, unique id; becomes the doc_id.")]
UrlFlag = Annotated[str | None, typer.Option("--url", help="An http or https address.")]
PathFlag = Annotated[Path | None, typer.Option("--path", readable=False, help="A file.")]
ResolverFlag = Annotated[
    str | None, typer.Option("--resolver", help="Name for limits and quotas (default: http or file).")
]
MetaFlag = Annotated[str | None, typer.Option("--meta", metavar="JSON", help="An object to store with it.")]
ListArgument = Annotated[
    Path, typer.Argument(metavar="FILE.jsonl", readable=False, help="One JSON object per line; - = stdin.")
]
LimitFlag = Annotated[int | None, typer.Option("--limit", min=1, help="Read only the first N lines.")]
FormatFlag = Annotated[
    Literal["table", "json"], typer.Option("--format", help="Output format; json = --json.")
]
CategoryFlag = Annotated[Category | None, typer.Option("--category", help="Only errors of this category.")]
ResetFlag = Annotated[bool, typer.Option("--reset-attempts", help="Allow all attempts again, not just one.")]
IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids (default: all).")]
DaysFlag = Annotated[
    float, typer.Option("--older-than-days", min=0, help="Only documents acquired at least this long ago.")
]
HostFlag = Annotated[str | None, typer.Option("--host", help="Only documents of this host.")]
OfResolverFlag = Annotated[str | None, typer.Option("--resolver", help="Only documents of this resolver.")]
WorkersFlag = Annotated[
    int | None, typer.Option("--workers", min=1, max=256, help="Documents acquired in parallel.")
]
PerHostFlag = Annotated[
    int | None, typer.Option("--max-per-host", min=1, help="Documents acquired in parallel per host.")
]
PerResolverFlag = Annotated[
    str | None,
    typer.Option(
        "--max-per-resolver",
        metavar="a:2,b:4",
        help="Documents in parallel per resolver; others keep their limit.",
    ),
]
DrainFlag = Annotated[
    bool, typer.Option("--drain", help="Also wait for delayed documents and those of other processes.")
]


@app.command("enqueue")
def enqueue(
    artifact_id: IdArgument,
    url: UrlFlag = None,
    path: PathFlag = None,
    resolver: ResolverFlag = None,
    meta: MetaFlag = None,
    home_path: HomeFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Queue one document. A document with a known id is not changed."""
    if (url is None) == (path is None):
        raise ConfigError(f"{artifact_id}: set either --url or --path.")
    source = {"id": artifact_id, "url": url, "path": path and str(path.absolute()), "resolver": resolver}
    try:
        parsed_meta = meta and parsed_object(meta)
    except ValueError as error:
        raise ConfigError(f"--meta: {error}.") from None
    try:
        artifact = new_artifact({**source, "meta": parsed_meta})
    except ValueError as error:
        raise ConfigError(f"{error}.") from None
    queue = open_home(home_path).queue
    is_new = bool(queue.enqueue([artifact], time.time()).new)
    known = queue.get(artifact_id)
    assert known is not None
    if path is not None and not path.is_file():
        warn(f"{path}: no such file yet; it must exist when the document is acquired.")
    if as_json:
        print_json({"id": artifact_id, "is_new": is_new, "state": known.state, "origin": known.origin})
    elif is_new:
        say(f"new: {artifact_id} is queued, from {known.origin}. {_NEXT}")
    else:
        say(f"known: {artifact_id} is {known.state}, from {known.origin}; nothing was changed.")


@app.command("import")
def import_list(
    file: ListArgument, limit: LimitFlag = None, home_path: HomeFlag = None, as_json: JsonFlag = False
) -> int:
    """Queue a list of documents. Malformed lines are reported with their numbers; the others are imported.

    A line is {"id"?, "url" or "path", "resolver"?, "meta"?, "max_attempts"?, "not_before"?}. The default id
    is the URL. Relative paths start at the list's folder. A list can be imported again."""
    report = ImportReport(max_kept=None if as_json else MAX_SHOWN)
    with _opened(file) as (stream, folder):
        try:
            ArtifactList(stream, folder, limit).store(open_home(home_path).queue, time.time(), report)
        except KeyboardInterrupt:
            warn(f"{file}: interrupted after {_import_line(report)}; import it again for the rest.")
            raise
    code = 1 if report.malformed else 0
    if as_json:
        counts = {"new": report.new, "duplicate": report.duplicate, "has_more": report.has_more}
        malformed = [asdict(line) for line in report.kept]
        print_json({"file": str(file), **counts, "malformed": malformed, "exit_code": code})
    else:
        _print_import(file, report, limit)
    return code


@app.command("stats")
def show_stats(form: FormatFlag = "table", home_path: HomeFlag = None, as_json: JsonFlag = False) -> None:
    """Show the queue: states, waits, documents in progress, quotas, and totals of the whole ledger."""
    stats = stats_object(open_home(home_path, read_only=True))
    if as_json or form == "json":
        print_json(stats)
    else:
        _print_stats(stats)


@app.command("retry-failed")
def retry_failed(
    category: CategoryFlag = None,
    reset_attempts: ResetFlag = False,
    dry_run: DryRunFlag = False,
    home_path: HomeFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Queue failed documents again."""
    # Without a ledger nothing can have failed, so none is created.
    queue = open_home(home_path, creates_ledger=False, read_only=dry_run).queue
    selected = Filter(category=category)
    retried = queue.retry_failed(time.time(), selected, reset_attempts=reset_attempts, dry_run=dry_run)
    verb = "would be queued again" if dry_run else "are queued again"
    _print_retried(retried, f"failed documents {verb}", as_json, dry_run=dry_run)


@app.command("refresh")
def refresh(
    ids: IdsArgument = None,
    older_than_days: DaysFlag = 0.0,
    host: HostFlag = None,
    resolver: OfResolverFlag = None,
    home_path: HomeFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Queue acquired documents again, to ingest those that changed. Unchanged ones cost one request each."""
    queue = open_home(home_path, creates_ledger=False).queue
    if ids:
        known = {artifact.artifact_id for artifact in queue.find(Filter(artifact_ids=ids))}
        unknown = [artifact_id for artifact_id in ids if artifact_id not in known]
        if unknown:
            raise ConfigError(
                f"{unknown[0]}: no queued document has this id. Files in watched folders need no refresh."
            )
    selected = Filter(artifact_ids=ids or None, host=host, resolver=resolver)
    refreshed = queue.refresh(time.time(), selected, older_than_s=older_than_days * 86_400)
    _print_retried(refreshed, "acquired documents are queued again", as_json)


@app.command("run")
def run_queue(
    workers: WorkersFlag = None,
    max_per_host: PerHostFlag = None,
    max_per_resolver: PerResolverFlag = None,
    drain: DrainFlag = False,
    home_path: HomeFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Acquire and ingest all documents that are due; with --drain, continue until the queue is empty.

    Limits apply to all processes of a home together; give each process the same limits."""
    configured = open_home(home_path).settings.queue.max_per_resolver
    # The steps read the settings again, so the flags are passed to them as environment variables.
    if workers is not None:
        _override("max_workers", str(workers))
    if max_per_host is not None:
        _override("max_per_host", str(max_per_host))
    if max_per_resolver is not None:
        _override("max_per_resolver", json.dumps(configured | _parse_limits(max_per_resolver)))
    home = open_home(home_path, creates_ledger=False)  # without a ledger nothing can be queued
    require_ready(home, list(home.graph), RunOptions.model_validate({}))
    report = RunReport(stages={stage: StageTotals() for stage in home.graph})
    if home.queue.find(Filter(), limit=1):
        with executing(home, progress_mode(as_json)) as executor:
            report = Drain(home, executor, warn, lambda: INTERRUPTS.count > 0, drain, report).run()
            finish(home, executor, report)
    result = {"queue": queue_object(home), **result_object(home, None, report)}
    if as_json:
        print_json(result)
    elif not any(result["queue"]["states"].values()):
        say("The queue is empty; import a list with `ingest queue import FILE.jsonl`.")
    else:
        print_result(result)
    return int(result["exit_code"])


def _parse_limits(text: str) -> dict[str, int]:
    """Return the limits of --max-per-resolver, written as `a:2,b:4`."""
    pairs = [part.strip().rpartition(":") for part in text.split(",")]
    try:
        options = QueueOptions.model_validate({"max_per_resolver": {name: cap for name, _, cap in pairs}})
    except ValidationError:
        raise ConfigError(
            f"--max-per-resolver: expected resolvers with limits from 1, as in a:2,b:4; got {text!r}."
        ) from None
    return dict(options.max_per_resolver)


def _override(name: str, value: str) -> None:
    """Set a setting's variable and remove its other spellings: another case, or one variable per key."""
    variable = f"INGEST_QUEUE__{name.upper()}"
    for known in list(os.environ):
        if known.upper() == variable or known.upper().startswith(f"{variable}__"):
            del os.environ[known]
    os.environ[variable] = value


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Open a list; yield it with the folder that its relative paths start from."""
    if str(file) == "-":
        yield sys.stdin.buffer, Path.cwd()
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}); expected JSON lines.") from None
    with stream:
        yield stream, file.absolute().parent


def _import_line(report: ImportReport) -> str:
    return f"{report.new} new, {report.duplicate} duplicate and {report.malformed} malformed lines"


def _print_import(file: Path, report: ImportReport, limit: int | None) -> None:
    say(f"{file}: {_import_line(report)}.")
    for malformed in report.kept:
        warn(f"line {malformed.line}: {malformed.reason}.")
    if report.malformed > len(report.kept):
        warn(f"and {report.malformed - len(report.kept)} more malformed lines; --json lists all.")
    if report.has_more:
        say(f"Stopped after {limit} lines (--limit); the file has more.")
    if report.new:
        say(f"Queued. {_NEXT}")


def _print_retried(retried: Retried, outcome: str, as_json: bool, *, dry_run: bool = False) -> None:
    batches = sorted(retried.batches)
    if as_json:
        print_json({"count": retried.count, "batches": batches, "dry_run": dry_run})
        return
    where = f", in {', '.join(batches)}" if batches else ""
    say(f"{retried.count} {outcome}{where}." + (f" {_NEXT}" if retried.count and not dry_run else ""))


def _print_stats(stats: dict[str, Any]) -> None:
    grid("", ["state", "documents"], [[state, count] for state, count in stats["states"].items()])
    totals, age_s = stats["totals"], stats["oldest_queued_age_s"]
    say()
    say(f"{stats['attempts']} attempts; {stats['delayed']} queued documents are delayed.")
    if age_s is not None:
        next_attempt = f"; the next attempt is due at {stats['next_at']}" if stats["next_at"] else ""
        say(f"The oldest queued document was added {age_s:,.0f} s ago{next_attempt}.")
    if stats["expired_leases"]:
        say(f"{stats['expired_leases']} leases have expired; other workers will take over.")
    for name in ("host", "resolver"):
        busy = ", ".join(f"{key} {count}" for key, count in stats[f"{name}s_in_progress"].items())
        say(f"In progress by {name}: {busy or 'none'}.")
    completed = ", ".join(f"{count} {state}" for state, count in totals["completed"].items())
    say(
        f"Since the ledger was created: {completed}; {totals['retries']} retries, "
        f"{totals['throttled']} waits for quotas and paused hosts; {totals['fetches']} fetches, "
        f"{totals['fetch_bytes'] / 1e6:,.1f} MB, {totals['fetch_seconds']:,.1f} s."
    )
    if stats["quotas"]:
        rows = [[api, use["consumed"], use["throttled"]] for api, use in stats["quotas"].items()]
        say()
        grid("", ["quota", "consumed", "throttled"], rows)

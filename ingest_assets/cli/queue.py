"""`ingest queue`: what is to be acquired is put in, looked at, tried again and run."""

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
from ingest_assets.cli.signals import PRESSES
from ingest_assets.core.errors import Category, ConfigError
from ingest_assets.settings.intake import QueueOptions

MAX_SHOWN = 20  # malformed lines of a list, so that its totals stay on the screen
_NEXT = "`ingest queue run` or the sensor of `ingest up` goes on from here."

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
def enqueue(
    artifact_id: IdArgument,
    url: UrlFlag = None,
    path: PathFlag = None,
    resolver: ResolverFlag = None,
    meta: MetaFlag = None,
    home: HomeFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Queue one artifact; one whose id is known stays as it is."""
    if (url is None) == (path is None):
        raise ConfigError(f"{artifact_id}: give either --url or --path.")
    given = {"id": artifact_id, "url": url, "path": path and str(path.absolute()), "resolver": resolver}
    try:
        parsed_meta = meta and parsed_object(meta)
    except ValueError as error:
        raise ConfigError(f"--meta: {error}.") from None
    try:
        artifact = new_artifact({**given, "meta": parsed_meta})
    except ValueError as error:
        raise ConfigError(f"{error}.") from None
    queue = open_home(home).queue
    is_new = bool(queue.enqueue([artifact], time.time()).new)
    known = queue.get(artifact_id)
    assert known is not None
    if path is not None and not path.is_file():
        warn(f"{path}: is no file here now; it is looked for when its turn comes.")
    if as_json:
        print_json({"id": artifact_id, "is_new": is_new, "state": known.state, "origin": known.origin})
    elif is_new:
        say(f"new: {artifact_id} is queued, from {known.origin}. {_NEXT}")
    else:
        say(f"known: {artifact_id} is {known.state}, from {known.origin}; nothing is changed.")


@app.command("import")
def import_list(
    file: ListArgument, limit: LimitFlag = None, home: HomeFlag = None, as_json: JsonFlag = False
) -> int:
    """Queue a list of artifacts; bad lines are named by their numbers and cost none of the others.

    A line is {"id"?, "url" or "path", "resolver"?, "meta"?, "max_attempts"?, "not_before"?}. Without an id, a
    page is known by its URL. Relative paths start at the list's folder. A list can be imported again."""
    report = ImportReport(max_kept=None if as_json else MAX_SHOWN)
    with _opened(file) as (stream, folder):
        try:
            ArtifactList(stream, folder, limit).store(open_home(home).queue, time.time(), report)
        except KeyboardInterrupt:
            warn(f"{file}: {_import_line(report)} were stored; import it again for the rest.")
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
def show_stats(form: FormatFlag = "table", home: HomeFlag = None, as_json: JsonFlag = False) -> None:
    """Show the queue in figures: states, waits, who is busy, quotas, and totals since the ledger began."""
    found = stats_object(open_home(home, only_looks=True))
    if as_json or form == "json":
        print_json(found)
    else:
        _print_stats(found)


@app.command("retry-failed")
def retry_failed(
    category: CategoryFlag = None,
    reset_attempts: ResetFlag = False,
    dry_run: DryRunFlag = False,
    home: HomeFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Queue artifacts again that ended in an error."""
    # Without a ledger nothing failed, and none is made.
    queue = open_home(home, makes_no_ledger=True, only_looks=dry_run).queue
    wanted = Filter(category=category)
    found = queue.retry_failed(time.time(), wanted, reset_attempts=reset_attempts, dry_run=dry_run)
    verb = "would be queued again" if dry_run else "are queued again"
    _print_retried(found, f"failed artifacts {verb}", as_json, dry_run=dry_run)


@app.command("refresh")
def refresh(
    ids: IdsArgument = None,
    older_than_days: DaysFlag = 0.0,
    host: HostFlag = None,
    resolver: OfResolverFlag = None,
    home: HomeFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Look again at acquired artifacts: what changed is ingested anew, the rest costs one request each."""
    queue = open_home(home, makes_no_ledger=True).queue
    if ids:
        known = {artifact.artifact_id for artifact in queue.find(Filter(artifact_ids=ids))}
        unknown = [artifact_id for artifact_id in ids if artifact_id not in known]
        if unknown:
            raise ConfigError(
                f"{unknown[0]}: no such artifact; `ingest status --documents` lists what is known."
            )
    wanted = Filter(artifact_ids=ids or None, host=host, resolver=resolver)
    found = queue.refresh(time.time(), wanted, older_than_s=older_than_days * 86_400)
    _print_retried(found, "acquired artifacts are queued again", as_json)


@app.command("run")
def run_queue(
    workers: WorkersFlag = None,
    max_per_host: PerHostFlag = None,
    max_per_resolver: PerResolverFlag = None,
    drain: DrainFlag = False,
    home: HomeFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Acquire what is queued and ingest it, as far as it is due; with --drain, until nothing is left.

    Limits hold over all processes of a home, each with its own idea of them: give all of them the same."""
    configured = open_home(home).settings.queue.max_per_resolver
    # The steps read the settings for themselves: what is given here reaches them as variables.
    if workers is not None:
        _override("max_workers", str(workers))
    if max_per_host is not None:
        _override("max_per_host", str(max_per_host))
    if max_per_resolver is not None:
        _override("max_per_resolver", json.dumps(configured | _caps(max_per_resolver)))
    here = open_home(home, makes_no_ledger=True)  # without a ledger nothing is queued, and none is made
    require_ready(here, list(here.graph), RunOptions.model_validate({}))
    report = RunReport(stages={stage: StageTotals() for stage in here.graph})
    if here.queue.find(Filter(), limit=1):
        with executing(here, progress_mode(as_json)) as executor:
            report = Drain(here, executor, warn, lambda: PRESSES.count > 0, drain, report).run()
            finish(here, executor, report)
    result = {"queue": queue_object(here), **result_object(here, None, report)}
    if as_json:
        print_json(result)
    elif not any(result["queue"]["states"].values()):
        say("Nothing was ever queued here; `ingest queue import FILE.jsonl` takes a list.")
    else:
        print_result(result)
    return int(result["exit_code"])


def _caps(given: str) -> dict[str, int]:
    """Of --max-per-resolver, as `a:2,b:4`."""
    pairs = [part.strip().rpartition(":") for part in given.split(",")]
    try:
        options = QueueOptions.model_validate({"max_per_resolver": {name: cap for name, _, cap in pairs}})
    except ValidationError:
        raise ConfigError(
            f"--max-per-resolver: should name resolvers, each with a number from 1: a:2,b:4; got {given!r}."
        ) from None
    return dict(options.max_per_resolver)


def _override(name: str, value: str) -> None:
    """Alone, whatever the spelling: names of variables are read in any case, and a map also key by key."""
    variable = f"INGEST_QUEUE__{name.upper()}"
    for known in list(os.environ):
        if known.upper() == variable or known.upper().startswith(f"{variable}__"):
            del os.environ[known]
    os.environ[variable] = value


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A list, and the folder at which relative paths in it start."""
    if str(file) == "-":
        yield sys.stdin.buffer, Path.cwd()
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}); give a list of JSON lines.") from None
    with stream:
        yield stream, file.absolute().parent


def _import_line(report: ImportReport) -> str:
    return f"{report.new} new, {report.duplicate} duplicate and {report.malformed} malformed lines"


def _print_import(file: Path, report: ImportReport, limit: int | None) -> None:
    say(f"{file}: {_import_line(report)}.")
    for wrong in report.kept:
        warn(f"line {wrong.line}: {wrong.reason}.")
    if report.malformed > len(report.kept):
        warn(f"and {report.malformed - len(report.kept)} more malformed lines; --json names them all.")
    if report.has_more:
        say(f"There is more in it than the {limit} lines that --limit allows.")
    if report.new:
        say(f"Queued. {_NEXT}")


def _print_retried(found: Retried, what: str, as_json: bool, *, dry_run: bool = False) -> None:
    batches = sorted(found.batches)
    if as_json:
        print_json({"count": found.count, "batches": batches, "dry_run": dry_run})
        return
    where = f", in {', '.join(batches)}" if batches else ""
    say(f"{found.count} {what}{where}." + (f" {_NEXT}" if found.count and not dry_run else ""))


def _print_stats(found: dict[str, Any]) -> None:
    grid("", ["state", "artifacts"], [[state, count] for state, count in found["states"].items()])
    totals, age_s = found["totals"], found["oldest_queued_age_s"]
    say()
    say(f"{found['attempts']} attempts; {found['delayed']} queued artifacts wait for their time.")
    if age_s is not None:
        next_one = f"; the next can be tried at {found['next_at']}" if found["next_at"] else ""
        say(f"The oldest queued artifact came {age_s:,.0f} s ago{next_one}.")
    if found["expired_leases"]:
        say(f"{found['expired_leases']} leases have expired: their workers are gone, others take over.")
    for name in ("host", "resolver"):
        busy = ", ".join(f"{key} {count}" for key, count in found[f"{name}s_in_progress"].items())
        say(f"In progress by {name}: {busy or 'none'}.")
    completed = ", ".join(f"{count} {state}" for state, count in totals["completed"].items())
    say(
        f"Since the ledger began: {completed}; {totals['retries']} retries, {totals['throttled']} waits for "
        f"quotas and resting hosts; {totals['fetches']} fetches, {totals['fetch_bytes'] / 1e6:,.1f} MB, "
        f"{totals['fetch_seconds']:,.1f} s."
    )
    if found["quotas"]:
        rows = [[api, use["consumed"], use["throttled"]] for api, use in found["quotas"].items()]
        say()
        grid("", ["quota", "consumed", "throttled"], rows)

"""`ingest demo`: ingest the sample documents of the product."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from ingest_assets.app.driver import finish, refresh, run_batches
from ingest_assets.app.home import open_home
from ingest_assets.cli.flags import JsonFlag
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.cli.run import executing, print_result, progress_mode, result_object
from ingest_assets.samples import BROKEN_SAMPLE, REJECTED_SAMPLES, samples_folder

DemoHomeFlag = Annotated[Path, typer.Option("--home", help="Home folder of the demo.")]


def demo(home_path: DemoHomeFlag = Path("demo"), as_json: JsonFlag = False) -> int:
    """Ingest the samples. One is broken on purpose and must be the only failure; two must be rejected."""
    home_path = home_path.expanduser()
    home_path.mkdir(parents=True, exist_ok=True)
    home = open_home(home_path)
    home.watch_as("samples", samples_folder())
    scan = refresh(home)
    with executing(home, progress_mode(as_json)) as executor:
        report = run_batches(home, list(home.graph), {}, executor, reason="demo")
        finish(home, executor, report)
    result = result_object(home, scan, report)
    failed = [failure["doc_id"].split(":", 1)[1] for failure in result["failures"]]
    verdicts = home.tables("admission").read(lambda rows: rows.filter(~pl.col("admitted")))
    rows = verdicts.select("doc_id", "reject_reason").iter_rows()
    rejected = {doc_id.split(":", 1)[1]: reason for doc_id, reason in rows}
    went_well = not result["problems"] and not report.broken
    as_expected = went_well and failed == [BROKEN_SAMPLE] and rejected == REJECTED_SAMPLES
    if as_json:
        print_json({**result, "as_expected": as_expected})
    else:
        print_result(result)
        _print_next_steps(home_path)
    if not as_expected:
        expected = ", ".join(REJECTED_SAMPLES)
        warn(f"ingest: expected one failure, {BROKEN_SAMPLE}, and {expected} to be rejected; see above.")
    return 0 if as_expected else 1


def _print_next_steps(home_path: Path) -> None:
    # The command is on PATH only if the environment is activated.
    in_environment = os.path.relpath(Path(sys.executable).with_name("ingest"))
    command = "ingest" if shutil.which("ingest") else in_environment
    say()
    say(f"{BROKEN_SAMPLE} is broken on purpose: a failed document does not affect the others.")
    rejected = ", ".join(f"{name} as {reason}" for name, reason in REJECTED_SAMPLES.items())
    say(f"Admission rejected {rejected}.")
    say("Next:")
    home = shlex.quote(str(home_path))
    say(f"  {command} inspect swarm-control-calendar.html --home {home}")
    say(f"  {command} up --home {home}       (web UI on http://127.0.0.1:3000)")
    say(f"  {command} all --home HOME --input FOLDER     (your own documents)")

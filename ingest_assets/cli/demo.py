"""`ingest demo`: the samples that ship with the product, from documents to vectors."""

import os
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


def demo(home: DemoHomeFlag = Path("demo"), as_json: JsonFlag = False) -> int:
    """Ingest the shipped samples. One is broken on purpose and must be the only failure; two are rejected."""
    home.mkdir(parents=True, exist_ok=True)
    here = open_home(home)
    here.watch_as("samples", samples_folder())
    scan = refresh(here)
    with executing(here, progress_mode(as_json)) as executor:
        report = run_batches(here, list(here.graph), {}, executor, reason="demo")
        finish(here, executor, report)
    result = result_object(here, scan, report)
    failed = [failure["doc_id"].split(":", 1)[1] for failure in result["failures"]]
    refused = here.tables("admission").read(lambda rows: rows.filter(~pl.col("admitted")))
    rows = refused.select("doc_id", "reject_reason").iter_rows()
    rejected = {doc_id.split(":", 1)[1]: reason for doc_id, reason in rows}
    went_well = not result["problems"] and not report.broken
    as_expected = went_well and failed == [BROKEN_SAMPLE] and rejected == REJECTED_SAMPLES
    if as_json:
        print_json({**result, "as_expected": as_expected})
    else:
        print_result(result)
        _print_next_steps(home)
    if not as_expected:
        expected = ", ".join(REJECTED_SAMPLES)
        warn(f"ingest: expected one failure, {BROKEN_SAMPLE}, and {expected} to be rejected; see above.")
    return 0 if as_expected else 1


def _print_next_steps(home: Path) -> None:
    # Without an activated environment the command is called by its path.
    in_environment = os.path.relpath(Path(sys.executable).with_name("ingest"))
    command = "ingest" if shutil.which("ingest") else in_environment
    say()
    say(f"{BROKEN_SAMPLE} is broken on purpose: one bad document never costs its neighbours.")
    why = ", ".join(f"{name} as {reason}" for name, reason in REJECTED_SAMPLES.items())
    say(f"Admission rejected {why}.")
    say("Next:")
    say(f"  {command} inspect swarm-control-calendar.html --home {home}")
    say(f"  {command} up --home {home}       (web UI on http://127.0.0.1:3000)")
    say(f"  {command} all --input FOLDER     (your own documents)")

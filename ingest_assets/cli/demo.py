"""`ingest demo`: the samples that ship with the product, from documents to vectors."""

import os
import shutil
import sys
from pathlib import Path

import polars as pl

from ingest_assets.app.driver import finish, refresh, run_batches
from ingest_assets.app.home import Home, open_home
from ingest_assets.cli.ingest import print_result, result_object
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.cli.runs import executing, progress_mode
from ingest_assets.samples import BROKEN_SAMPLE, REJECTED_SAMPLES, samples_folder


def ingest_samples(home: Path, *, as_json: bool) -> int:
    """Run the samples; gives zero when the outcome is the one that is expected."""
    home.mkdir(parents=True, exist_ok=True)
    here = open_home(home)
    here.watch_as("samples", samples_folder())
    scan = refresh(here)
    with executing(here, progress_mode(as_json)) as executor:
        report = run_batches(here, list(here.graph), {}, executor, reason="demo")
        finish(here, executor, report)
    result = result_object(here, scan, report)
    failed = [failure["doc_id"].split(":", 1)[1] for failure in result["failures"]]
    went_well = not result["problems"] and not report.broken
    as_expected = went_well and failed == [BROKEN_SAMPLE] and _rejected(here) == REJECTED_SAMPLES
    if as_json:
        print_json({**result, "as_expected": as_expected})
    else:
        print_result(result)
        _next_steps(home)
    if not as_expected:
        expected = ", ".join(REJECTED_SAMPLES)
        warn(f"ingest: expected one failure, {BROKEN_SAMPLE}, and {expected} to be rejected; see above.")
    return 0 if as_expected else 1


def _rejected(home: Home) -> dict[str, str]:
    """What admission rejected, and why."""
    rejected = home.tables("admission").read(lambda rows: rows.filter(~pl.col("admitted")))
    rows = rejected.select("doc_id", "reject_reason").iter_rows()
    return {doc_id.split(":", 1)[1]: reason for doc_id, reason in rows}


def _next_steps(home: Path) -> None:
    command = (
        "ingest" if shutil.which("ingest") else os.path.relpath(Path(sys.executable).with_name("ingest"))
    )
    say()
    say(f"{BROKEN_SAMPLE} is broken on purpose: one bad document never costs its neighbours.")
    why = ", ".join(f"{name} as {reason}" for name, reason in REJECTED_SAMPLES.items())
    say(f"Admission rejected {why}.")
    say("Next:")
    say(f"  {command} inspect swarm-control-calendar.html --home {home}")
    say(f"  {command} up --home {home}       (web UI on http://127.0.0.1:3000)")
    say(f"  {command} all --input FOLDER     (your own documents)")

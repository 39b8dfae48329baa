"""`ingest doctor`: is everything there that a run needs?"""

from pathlib import Path

from ingest_assets.app.doctor import examine
from ingest_assets.app.home import Home
from ingest_assets.cli.output import print_json, say
from ingest_assets.defs.instance import open_instance
from ingest_assets.settings.read import home_folder


def show_findings(home: Path | None, *, as_json: bool) -> int:
    """Print every finding; gives the exit code."""
    findings = list(examine((home or home_folder()).resolve(), {"dagster": _instance}))
    if as_json:
        print_json([{"check": f.name, "ok": f.is_good, "fact": f.fact} for f in findings])
    else:
        for finding in findings:
            say(f"{'ok  ' if finding.is_good else 'FAIL'}  {finding.name}: {finding.fact}")
    return 0 if all(f.is_good for f in findings) else 1


def _instance(home: Home) -> str:
    with open_instance(home.layout) as instance:
        return f"instance in {instance.root_directory}"

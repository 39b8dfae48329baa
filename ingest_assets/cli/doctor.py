"""`ingest doctor`: check that everything a run needs is present."""

from ingest_assets.app.doctor import examine
from ingest_assets.app.home import Home
from ingest_assets.cli.flags import HomeFlag, JsonFlag
from ingest_assets.cli.output import print_json, say
from ingest_assets.cli.signals import INTERRUPTS
from ingest_assets.settings.read import home_folder


def doctor(home_path: HomeFlag = None, as_json: JsonFlag = False) -> int:
    """Check Python, libraries, models, settings, folders and the Dagster instance."""
    findings = list(examine((home_path or home_folder()).expanduser().resolve(), {"dagster": _instance}))
    if as_json:
        print_json([{"check": f.name, "ok": f.is_good, "fact": f.fact} for f in findings])
    else:
        for finding in findings:
            say(f"{'ok  ' if finding.is_good else 'FAIL'}  {finding.name}: {finding.fact}")
    return 0 if all(f.is_good for f in findings) else 1


def _instance(home: Home) -> str:
    with INTERRUPTS.exiting_at_once():
        from ingest_assets.defs.instance import open_instance  # Dagster takes a second to load

    with open_instance(home.layout) as instance:
        return f"instance in {instance.root_directory}"

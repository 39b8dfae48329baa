"""After a command that wrote lexical tables: the statistics over all of them, through Dagster."""

from ingest_assets.cli.runs import RunReport, run_job
from ingest_assets.defs.corpus import LEXICAL_STATS_JOB
from ingest_assets.defs.home import Home
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.stages.lexical_stats import are_current

CORPUS_STATS = "lexical_stats"


def refresh_corpus(home: Home, report: RunReport, resource: HomeResource | None = None) -> None:
    """Make what is of the whole corpus again, if batches changed it; a failure is told as a broken batch."""
    tables = home.tables("lexical")
    if "lexical" not in report.stages or not tables.paths or are_current(home.layout, tables):
        return
    failure = run_job(home, LEXICAL_STATS_JOB, resource)
    if failure is not None:
        report.broken[CORPUS_STATS] = failure

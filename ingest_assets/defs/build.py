"""Binds assets, checks, jobs, automation and resources into Dagster definitions."""

import dagster as dg

from ingest_assets.defs.assets.admission import admission
from ingest_assets.defs.assets.chunks import chunks
from ingest_assets.defs.assets.doctags import doctags
from ingest_assets.defs.assets.documents import documents
from ingest_assets.defs.assets.embeddings import dense_embeddings, lexical_embeddings, sparse_embeddings
from ingest_assets.defs.assets.lexical_stats import lexical_stats, lexical_stats_cover_every_batch
from ingest_assets.defs.automation import folder_sensor, reconcile_schedule
from ingest_assets.defs.checks.tables import checks_of
from ingest_assets.defs.corpus import corpus_sensor, lexical_stats_job
from ingest_assets.defs.io_manager import ParquetTables
from ingest_assets.defs.jobs import jobs
from ingest_assets.defs.resources.acquirer import ArtifactAcquirer
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.defs.resources.runner import StageRunner


def build_definitions(home: HomeResource | None = None, *, progress: str = "log") -> dg.Definitions:
    """The deployment of a home, by default the environment's; `progress` says who hears of it."""
    home = home or HomeResource()
    here = home.open()
    settings, graph = here.settings, here.graph
    families = {"dense": dense_embeddings, "sparse": sparse_embeddings, "lexical": lexical_embeddings}
    vectors = [asset for stage, asset in families.items() if stage in graph]
    return dg.Definitions(
        assets=[documents, doctags, admission, chunks, *vectors, lexical_stats],
        asset_checks=[*checks_of(graph), lexical_stats_cover_every_batch],
        jobs=[*jobs(settings.executors, graph), lexical_stats_job()],
        sensors=[folder_sensor(settings.automation), corpus_sensor(settings.automation)],
        schedules=[reconcile_schedule(settings.automation)],
        executor=dg.in_process_executor,
        resources={
            "home": home,
            "acquirer": ArtifactAcquirer(home=home, progress=progress),
            "io_manager": ParquetTables(home=home),
            "runner": StageRunner(home=home, progress=progress),
        },
    )

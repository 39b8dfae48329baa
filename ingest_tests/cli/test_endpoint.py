"""A home whose vectors come from an endpoint, through the product."""

from pathlib import Path

import pytest

from ingest_assets.embedders.providers import close_dense
from ingest_tests.conftest import Command
from ingest_tests.embedders.vector_server import DIM, VectorScript, serving
from ingest_tests.parsing.vision_server import refused

pytestmark = pytest.mark.slow  # runs the whole graph several times

SETTINGS = """
[embeddings.dense]
provider = "openai"
model = "some-model"
dim = {dim}
[embeddings.dense.remote]
url = "{url}"
retries = 0
"""


def test_a_rejected_text_fails_its_document_and_a_rerun_requests_only_that_text(ingest: Command, notes: Path):
    """The others are done; when the endpoint accepts the text, nothing is left to request."""
    (notes / "poison.md").write_text("# Poison\n\nThis bottle of poison is not to be opened by anybody.\n")
    state = {"refuses": True}
    script: VectorScript = lambda n, texts: (  # noqa: E731
        refused(400) if state["refuses"] and any("poison" in text for text in texts) else None
    )
    with serving(script) as server:
        (ingest.home / "ingest.toml").write_text(SETTINGS.format(dim=DIM, url=server.url))
        done = ingest("all", "--input", notes, check=1)
        assert "poison.md [dense E_TEXT_REFUSED] Chunk " in done.stdout + done.stderr
        assert "1 failed" in done.stdout

        state["refuses"] = False
        before = len(server.asked)
        ingest("all")
        assert {"poison" in text for texts in server.inputs[before:] for text in texts} == {True}

        tables, before = ingest.hashes(), len(server.asked)
        for path in (ingest.home / "data" / "embeddings" / "dense").glob("*.parquet"):
            path.unlink()
        ingest("all")
        assert ingest.hashes() == tables
        assert len(server.asked) == before
    close_dense()

"""The engine's identity is in the fingerprints of page formats (PDF, images), and in no others."""

import hashlib
import pickle
from pathlib import Path

import pytest

from ingest_assets.core.errors import StageError
from ingest_assets.core.layout import Layout
from ingest_assets.parsing.engines import LAYOUT, choose_engine
from ingest_assets.parsing.errors import EngineUnavailable
from ingest_assets.settings.parsing import ParsingOptions, VlmOptions
from ingest_assets.stages.base import config_hash, work_items
from ingest_assets.stages.doctags import DoctagsStage
from ingest_assets.stages.documents import DocumentsStage, KnownFile
from ingest_assets.storage.table import Table
from ingest_tests.parsing.docling_models import write_hollow_models
from ingest_tests.parsing.documents import pdf
from ingest_tests.stages.conftest import BATCH, CONTEXT, item_of, write_table

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(64)
FILES = {"page.html": b"<html><body>May</body></html>", "report.pdf": pdf([[]]), "photo.png": PICTURE}
ENVIRON = {"HF_HOME": "/nowhere", "VLM_KEY": "sk-secret-of-this-test"}
SERVER = VlmOptions(url="http://127.0.0.1:1/v1", model="granite", api_key_env="VLM_KEY")


@pytest.fixture
def documents(tmp_path: Path) -> Table:
    """The documents table of a web page, a PDF and a picture."""
    rows = {
        known.doc_id: DocumentsStage().rows(_item(known, tmp_path), CONTEXT) for known in _known(tmp_path)
    }
    return write_table(tmp_path / "documents.parquet", DocumentsStage.table, rows)


def _known(folder: Path) -> list[KnownFile]:
    files = []
    for number, (name, content) in enumerate(FILES.items()):
        path = folder / name
        path.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        files.append(KnownFile(name, BATCH, number, "docs", str(path), digest, len(content)))
    return files


def _item(known: KnownFile, folder: Path):
    return item_of(DocumentsStage(), known.candidate(), folder)


def _stage(**settings: object) -> DoctagsStage:
    options = ParsingOptions(**settings)
    return DoctagsStage(options, choose_engine(options, ENVIRON))


def _fingerprints(stage: DoctagsStage, documents: Table) -> dict[str, str]:
    items = work_items(stage, stage.candidates(documents), Layout(Path("/home")), BATCH, None, {})
    return {item.item_id: item.fingerprint for item in items}


def _stale(before: DoctagsStage, after: DoctagsStage, documents: Table) -> set[str]:
    """Return the documents that must be read again."""
    old, new = _fingerprints(before, documents), _fingerprints(after, documents)
    return {name for name in old if old[name] != new[name]}


def test_new_models_make_only_page_formats_stale(documents: Table, tmp_path: Path):
    """With `auto`, downloaded models change the engine; web pages do not use it."""
    folder = tmp_path / "models"
    before = _stage(artifacts_path=str(folder))
    write_hollow_models(folder)
    after = _stage(artifacts_path=str(folder))

    assert (before.engine.name, after.engine.name) == ("embedded", "docling")
    assert _stale(before, after, documents) == {"report.pdf", "photo.png"}
    assert config_hash(before) != config_hash(after)


def test_other_weights_make_page_formats_stale(documents: Table, tmp_path: Path):
    """The fingerprint contains the hash of the weights."""
    folder = write_hollow_models(tmp_path / "models")
    before = _stage(artifacts_path=str(folder))
    write_hollow_models(folder, LAYOUT, content=b"\x01" * 8)

    assert _stale(before, _stage(artifacts_path=str(folder)), documents) == {"report.pdf", "photo.png"}


def test_naming_the_engine_that_was_chosen_makes_nothing_stale(documents: Table, tmp_path: Path):
    """The fingerprint contains the chosen engine, not the setting."""
    folder = str(write_hollow_models(tmp_path / "models"))

    assert _stale(_stage(), _stage(pdf="embedded"), documents) == set()
    assert (
        _stale(_stage(artifacts_path=folder), _stage(artifacts_path=folder, pdf="docling"), documents)
        == set()
    )


def test_the_model_free_engine_leaves_pictures_current(documents: Table):
    """They are read in the same way as before."""
    assert _stale(_stage(), _stage(pdf="native"), documents) == {"report.pdf"}


def test_ocr_is_in_the_fingerprint_of_page_formats_only(documents: Table):
    """Web pages never need it."""
    assert _stale(_stage(), _stage(ocr=False), documents) == {"report.pdf", "photo.png"}


@pytest.mark.parametrize(
    "change",
    [
        {"url": "http://127.0.0.1:2/v1"},
        {"model": "smoldocling"},
        {"prompt": "Read!"},
        {"response_format": "markdown"},
        {"image_scale": 1.0},
        {"max_tokens": 7},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_request_to_a_vision_model_makes_page_formats_stale(
    change: dict[str, object], documents: Table
):
    """Another server, model or prompt gives another answer."""
    before, after = (_stage(pdf="vlm", vlm=SERVER.model_copy(update=update)) for update in ({}, change))

    assert _stale(before, after, documents) == {"report.pdf", "photo.png"}


@pytest.mark.parametrize(
    "change", [{"timeout_seconds": 7.0}, {"concurrency": 7}, {"api_key_env": ""}], ids=str
)
def test_timeouts_and_concurrency_of_a_vision_model_make_nothing_stale(
    change: dict[str, object], documents: Table
):
    """The answer is the same."""
    before, after = (_stage(pdf="vlm", vlm=SERVER.model_copy(update=update)) for update in ({}, change))

    assert _stale(before, after, documents) == set()


def test_the_footer_names_the_engine_and_its_models(tmp_path: Path):
    """A table describes itself, even without the settings and databases."""
    docling = _stage(artifacts_path=str(write_hollow_models(tmp_path / "models")))
    layout, tables = (model.content_hash[:12] for model in docling.engine.models)

    assert _stage().footer() == {"pdf_engine": "embedded"}
    assert docling.footer() == {
        "pdf_engine": "docling",
        "pdf_models": f"layout@{layout}, tableformer@{tables}",
    }
    assert _stage(pdf="vlm", vlm=SERVER).footer() == {"pdf_engine": "vlm", "pdf_models": "granite"}


def test_the_api_key_is_not_pickled_with_the_stage():
    """Workers read it from their own environment."""
    stage = _stage(pdf="vlm", vlm=SERVER)

    assert ENVIRON["VLM_KEY"].encode() not in pickle.dumps(stage)
    assert ENVIRON["VLM_KEY"] not in repr(stage) + str(stage.config())


def test_a_worker_uses_the_engine_of_the_plan(documents: Table, tmp_path: Path, monkeypatch):
    """It fails if the models are missing there, and does not choose another engine."""
    folder = write_hollow_models(tmp_path / "models")
    stage = _stage(artifacts_path=str(folder))
    items = {
        item.item_id: item
        for item in work_items(stage, stage.candidates(documents), Layout(tmp_path), BATCH, None, {})
    }
    folder.rename(tmp_path / "elsewhere")

    with pytest.raises(EngineUnavailable) as refusal:
        stage.rows(items["report.pdf"], CONTEXT)

    failure = StageError.of(refusal.value, stage="doctags", item_id="report.pdf")
    assert (failure.category, failure.code) == ("config", "E_PARSE_ENGINE_UNAVAILABLE")
    assert stage.rows(items["page.html"], CONTEXT).num_rows == 1

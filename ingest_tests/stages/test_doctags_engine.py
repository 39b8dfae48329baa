"""Who reads pages is part of why a page document is current, and of no other."""

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
ENVIRON = {"HF_HOME": "/nowhere", "VLM_KEY": "sk-nobody-may-see-this"}
SERVER = VlmOptions(url="http://127.0.0.1:1/v1", model="granite", api_key_env="VLM_KEY")


@pytest.fixture
def documents(tmp_path: Path) -> Table:
    """A web page, a PDF and a picture, as the documents stage has them."""
    rows = {
        known.doc_id: DocumentsStage().rows(_item(known, tmp_path), CONTEXT) for known in _known(tmp_path)
    }
    return write_table(tmp_path / "documents.parquet", DocumentsStage.table, rows)


def _known(folder: Path) -> list[KnownFile]:
    found = []
    for number, (name, content) in enumerate(FILES.items()):
        path = folder / name
        path.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        found.append(KnownFile(name, BATCH, number, "docs", str(path), digest, len(content)))
    return found


def _item(known: KnownFile, folder: Path):
    return item_of(DocumentsStage(), known.candidate(), folder)


def _stage(**settings: object) -> DoctagsStage:
    options = ParsingOptions(**settings)
    return DoctagsStage(options, choose_engine(options, ENVIRON))


def _marks(stage: DoctagsStage, documents: Table) -> dict[str, str]:
    items = work_items(stage, stage.candidates(documents), Layout(Path("/home")), BATCH, None, {})
    return {item.item_id: item.fingerprint for item in items}


def _stale(before: DoctagsStage, after: DoctagsStage, documents: Table) -> set[str]:
    """What has to be read again."""
    old, new = _marks(before, documents), _marks(after, documents)
    return {name for name in old if old[name] != new[name]}


def test_models_that_arrive_make_pages_stale_and_nothing_else(documents: Table, tmp_path: Path):
    """Under auto, a pull changes who reads them; web pages are none of its business."""
    folder = tmp_path / "models"
    before = _stage(artifacts_path=str(folder))
    write_hollow_models(folder)
    after = _stage(artifacts_path=str(folder))

    assert (before.engine.name, after.engine.name) == ("embedded", "docling")
    assert _stale(before, after, documents) == {"report.pdf", "photo.png"}
    assert config_hash(before) != config_hash(after)


def test_other_models_make_pages_stale(documents: Table, tmp_path: Path):
    """Weights are what reads."""
    folder = write_hollow_models(tmp_path / "models")
    before = _stage(artifacts_path=str(folder))
    write_hollow_models(folder, LAYOUT, content=b"\x01" * 8)

    assert _stale(before, _stage(artifacts_path=str(folder)), documents) == {"report.pdf", "photo.png"}


def test_naming_the_engine_that_was_chosen_makes_nothing_stale(documents: Table, tmp_path: Path):
    """What decides is who reads, not how it was asked for."""
    folder = str(write_hollow_models(tmp_path / "models"))

    assert _stale(_stage(), _stage(pdf="embedded"), documents) == set()
    assert (
        _stale(_stage(artifacts_path=folder), _stage(artifacts_path=folder, pdf="docling"), documents)
        == set()
    )


def test_the_model_free_engine_leaves_pictures_current(documents: Table):
    """They are read as before."""
    assert _stale(_stage(), _stage(pdf="native"), documents) == {"report.pdf"}


def test_ocr_is_for_pages_alone(documents: Table):
    """Web pages have no pages without text."""
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
def test_another_question_to_a_vision_model_makes_pages_stale(change: dict[str, object], documents: Table):
    """Who is asked, and what."""
    before, after = (_stage(pdf="vlm", vlm=SERVER.model_copy(update=update)) for update in ({}, change))

    assert _stale(before, after, documents) == {"report.pdf", "photo.png"}


@pytest.mark.parametrize(
    "change", [{"timeout_seconds": 7.0}, {"concurrency": 7}, {"api_key_env": ""}], ids=str
)
def test_how_patiently_a_vision_model_is_asked_makes_nothing_stale(
    change: dict[str, object], documents: Table
):
    """The answer is the same."""
    before, after = (_stage(pdf="vlm", vlm=SERVER.model_copy(update=update)) for update in ({}, change))

    assert _stale(before, after, documents) == set()


def test_the_footer_names_the_engine_and_its_models(tmp_path: Path):
    """A table describes itself when everything else is lost."""
    docling = _stage(artifacts_path=str(write_hollow_models(tmp_path / "models")))
    layout, tables = (found.content_hash[:12] for found in docling.engine.models)

    assert _stage().footer() == {"pdf_engine": "embedded"}
    assert docling.footer() == {
        "pdf_engine": "docling",
        "pdf_models": f"layout@{layout}, tableformer@{tables}",
    }
    assert _stage(pdf="vlm", vlm=SERVER).footer() == {"pdf_engine": "vlm", "pdf_models": "granite"}


def test_the_key_does_not_travel_with_the_stage():
    """Workers take it from their own environment."""
    stage = _stage(pdf="vlm", vlm=SERVER)

    assert ENVIRON["VLM_KEY"].encode() not in pickle.dumps(stage)
    assert ENVIRON["VLM_KEY"] not in repr(stage) + str(stage.config())


def test_a_worker_elsewhere_does_as_the_plan_says(documents: Table, tmp_path: Path, monkeypatch):
    """Not as it would choose by itself: there the models are gone, and it says so."""
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

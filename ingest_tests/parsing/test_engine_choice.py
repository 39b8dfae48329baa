"""The choice of the page engine, from files and settings, before any document is read."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.parsing.engines import LAYOUT, TABLEFORMER, choose_engine, model_location
from ingest_assets.settings.parsing import ParsingOptions, VlmOptions
from ingest_tests.parsing.docling_models import write_hollow_cache, write_hollow_models

SERVER = VlmOptions(url="http://127.0.0.1:1/v1/chat/completions", model="granite-docling")


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """An environment whose hub cache is empty."""
    return {"HF_HOME": str(tmp_path / "no-hub")}


def _choose(environ: dict[str, str], **settings: object):
    return choose_engine(ParsingOptions(**settings), environ)


def test_without_doclings_models_the_embedded_engine_is_chosen(nowhere: dict[str, str]):
    """A fresh machine has no models and needs none."""
    engine = _choose(nowhere)

    assert engine.name == "embedded"
    assert engine.models == ()
    assert "auto: Docling's models are not installed; `ingest models pull` installs them" in engine.reason


def test_docling_is_chosen_where_its_models_are(tmp_path: Path, nowhere: dict[str, str]):
    """If both are complete."""
    engine = _choose(nowhere, artifacts_path=str(write_hollow_models(tmp_path / "models")))

    assert engine.name == "docling"
    assert [found.model for found in engine.models] == [LAYOUT, TABLEFORMER]
    assert all(found.is_complete and len(found.content_hash) == 64 for found in engine.models)


def test_without_a_folder_the_hubs_cache_is_checked(tmp_path: Path):
    """In its layout: by the commit of the revision."""
    engine = _choose({"HF_HUB_CACHE": str(write_hollow_cache(tmp_path / "hub"))})

    assert engine.name == "docling"
    assert engine.models[0].revision == "c" * 40


def test_doclings_environment_variable_sets_the_folder_too(tmp_path: Path, nowhere: dict[str, str]):
    """The setting has precedence."""
    folder = str(write_hollow_models(tmp_path / "models"))
    environ = nowhere | {"DOCLING_ARTIFACTS_PATH": folder}

    assert _choose(environ).name == "docling"
    assert _choose(environ, artifacts_path=str(tmp_path / "other")).name == "embedded"


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"])
def test_the_cache_is_where_the_hubs_client_has_it(variable: str, tmp_path: Path):
    """Compared with the client in another process, since it reads its variables on import."""
    environ = {variable: str(tmp_path), "HOME": str(tmp_path / "home")}
    ask = "from huggingface_hub.constants import HF_HUB_CACHE; print(HF_HUB_CACHE)"
    done = subprocess.run(
        [sys.executable, "-c", ask], env=environ, capture_output=True, text=True, check=True
    )

    assert str(model_location("", environ).path) == done.stdout.strip()


@pytest.mark.parametrize("model", [LAYOUT, TABLEFORMER], ids=lambda model: model.name)
def test_a_model_with_a_missing_file_is_not_used(model, tmp_path: Path, nowhere: dict[str, str]):
    """An existing folder is not enough."""
    folder = write_hollow_models(tmp_path / "models")
    (folder / model.folder / model.files[-1]).unlink()

    engine = _choose(nowhere, artifacts_path=str(folder))

    assert engine.name == "embedded"
    assert f"{model.name}: {model.files[-1]} is missing" in engine.reason


def test_truncated_weights_are_not_used(tmp_path: Path, nowhere: dict[str, str]):
    """An interrupted copy has the right name but not the right size."""
    folder = write_hollow_models(tmp_path / "models")
    path = folder / LAYOUT.folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-3])
    size = path.stat().st_size

    engine = _choose(nowhere, artifacts_path=str(folder))

    assert f"model.safetensors is unusable (it has {size} of {size + 3} bytes)" in engine.reason


@pytest.mark.parametrize("content", [b"", b"\x00\x00", b"\xff" * 64, b"\x02" + b"\x00" * 7 + b"[]"])
def test_files_that_are_no_weights_are_not_used(content: bytes, tmp_path: Path, nowhere: dict[str, str]):
    """For example pointers of large-file storage."""
    folder = write_hollow_models(tmp_path / "models")
    (folder / LAYOUT.folder / "model.safetensors").write_bytes(content)

    assert "its header is damaged" in _choose(nowhere, artifacts_path=str(folder)).reason


def test_the_engine_docling_without_models_is_an_error_of_one_line(tmp_path: Path, nowhere: dict[str, str]):
    """It names what is missing, where, and what to do."""
    folder = write_hollow_models(tmp_path / "models", LAYOUT)

    with pytest.raises(ConfigError) as refusal:
        _choose(nowhere, pdf="docling", artifacts_path=str(folder))

    line = str(refusal.value)
    assert line.startswith(f"parsing.pdf: Docling's models are not all in {folder}: tableformer is missing.")
    assert "`ingest models pull`" in line
    assert "\n" not in line


def test_the_models_place_is_not_part_of_the_identity(tmp_path: Path):
    """Moving models makes no document stale."""
    in_folder = _choose({}, artifacts_path=str(write_hollow_models(tmp_path / "here")))
    in_cache = _choose({"HF_HUB_CACHE": str(write_hollow_cache(tmp_path / "hub"))})
    options = ParsingOptions()

    assert in_folder.identity("pdf", options) == in_cache.identity("pdf", options)


def test_replaced_models_change_the_identity(tmp_path: Path):
    """Also in the same folder of a running server."""
    folder = write_hollow_models(tmp_path / "models")
    before = _choose({}, artifacts_path=str(folder)).identity("pdf", ParsingOptions())

    write_hollow_models(folder, LAYOUT, content=b"\x01" * 8)
    after = _choose({}, artifacts_path=str(folder)).identity("pdf", ParsingOptions())

    assert before["models"]["layout"] != after["models"]["layout"]
    assert before["models"]["tableformer"] == after["models"]["tableformer"]


def test_an_engine_survives_pickling(tmp_path: Path):
    """It is equal to the original, so that existing readers are reused."""
    engine = _choose({}, artifacts_path=str(write_hollow_models(tmp_path / "models")))

    travelled = pickle.loads(pickle.dumps(engine))

    assert travelled == engine
    assert hash(travelled) == hash(engine)


@pytest.mark.parametrize("left_out", ["url", "model"])
def test_a_vision_model_needs_a_url_and_a_name(left_out: str):
    """This is checked before the first page."""
    with pytest.raises(ConfigError, match=rf"^parsing\.vlm\.{left_out} is not set"):
        _choose({}, pdf="vlm", vlm=SERVER.model_copy(update={left_out: ""}))


def test_a_key_that_is_not_in_the_environment_is_an_error():
    """The message names its variable."""
    with pytest.raises(ConfigError, match=r"^parsing\.vlm\.api_key_env: VLM_KEY is not set\."):
        _choose({}, pdf="vlm", vlm=SERVER.model_copy(update={"api_key_env": "VLM_KEY"}))


def test_a_key_with_a_line_break_is_not_printed():
    """`export VLM_KEY="$(cat key.txt)…"` can cause it."""
    options = SERVER.model_copy(update={"api_key_env": "VLM_KEY"})

    with pytest.raises(
        ConfigError, match="VLM_KEY contains characters that are not valid in a key"
    ) as refusal:
        _choose({"VLM_KEY": "geheim\n"}, pdf="vlm", vlm=options)

    assert "geheim" not in str(refusal.value)


def test_the_native_engine_leaves_images_to_the_embedded_engine():
    """They have no text layer."""
    engine = _choose({}, pdf="native")

    assert (engine.reader_of("pdf"), engine.reader_of("image")) == ("native", "embedded")


def test_the_models_names_are_those_of_the_installed_docling(monkeypatch: pytest.MonkeyPatch):
    """This detects a new Docling that loads other files."""
    from docling.datamodel.pipeline_options import LayoutObjectDetectionOptions, TableStructureOptions
    from docling.models.stages.table_structure import table_structure_model as tables

    asked: dict[str, str] = {}
    monkeypatch.setattr(tables, "download_hf_model", lambda **given: asked.update(given))
    tables.TableStructureModel.download_models()
    layout = LayoutObjectDetectionOptions()
    engine = layout.engine_options.engine_type

    assert layout.model_spec.get_repo_id(engine) == LAYOUT.repo
    assert layout.model_spec.get_revision(engine) == LAYOUT.revision
    assert (asked["repo_id"], asked["revision"]) == (TABLEFORMER.repo, TABLEFORMER.revision)
    assert tables.TableStructureModel._model_repo_folder == TABLEFORMER.folder
    mode = TableStructureOptions().mode.value
    folder = f"{tables.TableStructureModel._model_path}/{mode}"
    assert all(name.startswith(f"{folder}/") for name in TABLEFORMER.files)

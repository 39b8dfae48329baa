"""Which engine reads pages: decided from files and settings alone, before any document."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.parsing.engines import LAYOUT, TABLEFORMER, choose_engine, place_of
from ingest_assets.settings.parsing import ParsingOptions, VlmOptions
from ingest_tests.parsing.docling_models import write_hollow_cache, write_hollow_models

SERVER = VlmOptions(url="http://127.0.0.1:1/v1/chat/completions", model="granite-docling")


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """An environment whose hub cache is empty."""
    return {"HF_HOME": str(tmp_path / "no-hub")}


def _choose(environ: dict[str, str], **settings: object):
    return choose_engine(ParsingOptions(**settings), environ)


def test_without_its_models_the_embedded_engine_stands_in_for_docling(nowhere: dict[str, str]):
    """A fresh machine has no models, and must not need any."""
    engine = _choose(nowhere)

    assert engine.name == "embedded"
    assert engine.models == ()
    assert "auto: Docling's models are not all in the hub's cache" in engine.why
    assert "layout is absent, tableformer is absent" in engine.why


def test_docling_is_chosen_where_its_models_are(tmp_path: Path, nowhere: dict[str, str]):
    """Both of them, whole."""
    engine = _choose(nowhere, artifacts_path=str(write_hollow_models(tmp_path / "models")))

    assert engine.name == "docling"
    assert [found.model for found in engine.models] == [LAYOUT, TABLEFORMER]
    assert all(found.is_whole and len(found.content_hash) == 64 for found in engine.models)


def test_the_hubs_cache_is_looked_at_where_no_folder_is_set(tmp_path: Path):
    """As its client keeps it: by the commit that the revision stands for."""
    engine = _choose({"HF_HUB_CACHE": str(write_hollow_cache(tmp_path / "hub"))})

    assert engine.name == "docling"
    assert engine.models[0].revision == "c" * 40


def test_doclings_own_variable_names_the_folder_too(tmp_path: Path, nowhere: dict[str, str]):
    """But the setting comes first."""
    folder = str(write_hollow_models(tmp_path / "models"))
    environ = nowhere | {"DOCLING_ARTIFACTS_PATH": folder}

    assert _choose(environ).name == "docling"
    assert _choose(environ, artifacts_path=str(tmp_path / "other")).name == "embedded"


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"])
def test_the_cache_is_where_the_hubs_client_has_it(variable: str, tmp_path: Path):
    """The client itself is asked, in a process of its own: it reads its variables once, on import."""
    environ = {variable: str(tmp_path), "HOME": str(tmp_path / "home")}
    ask = "from huggingface_hub.constants import HF_HUB_CACHE; print(HF_HUB_CACHE)"
    done = subprocess.run(
        [sys.executable, "-c", ask], env=environ, capture_output=True, text=True, check=True
    )

    assert str(place_of("", environ).path) == done.stdout.strip()


@pytest.mark.parametrize("model", [LAYOUT, TABLEFORMER], ids=lambda model: model.name)
def test_one_missing_file_is_no_model(model, tmp_path: Path, nowhere: dict[str, str]):
    """A folder alone proves nothing."""
    folder = write_hollow_models(tmp_path / "models")
    (folder / model.folder / model.files[-1]).unlink()

    engine = _choose(nowhere, artifacts_path=str(folder))

    assert engine.name == "embedded"
    assert f"of {model.name} {model.files[-1]} is missing" in engine.why


def test_weights_cut_short_are_no_model(tmp_path: Path, nowhere: dict[str, str]):
    """A copy that broke off has the name, but not the length."""
    folder = write_hollow_models(tmp_path / "models")
    path = folder / LAYOUT.folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-3])
    size = path.stat().st_size

    engine = _choose(nowhere, artifacts_path=str(folder))

    assert f"model.safetensors cannot be used (it has {size} of {size + 3} bytes)" in engine.why


@pytest.mark.parametrize("content", [b"", b"\x00\x00", b"\xff" * 64, b"\x02" + b"\x00" * 7 + b"[]"])
def test_weights_that_are_something_else_are_no_model(
    content: bytes, tmp_path: Path, nowhere: dict[str, str]
):
    """Pointers of large-file storage, for one."""
    folder = write_hollow_models(tmp_path / "models")
    (folder / LAYOUT.folder / "model.safetensors").write_bytes(content)

    assert "its header is damaged" in _choose(nowhere, artifacts_path=str(folder)).why


def test_docling_asked_for_without_its_models_is_refused_in_one_line(tmp_path: Path, nowhere: dict[str, str]):
    """What is missing, where it was looked for, and what to do."""
    folder = write_hollow_models(tmp_path / "models", LAYOUT)

    with pytest.raises(ConfigError) as refusal:
        _choose(nowhere, pdf="docling", artifacts_path=str(folder))

    line = str(refusal.value)
    assert line.startswith(f"parsing.pdf: docling needs its models, and in {folder} tableformer is absent;")
    assert "`ingest models pull`" in line
    assert "\n" not in line


def test_where_the_same_models_are_does_not_matter(tmp_path: Path):
    """Bytes decide, so moving models makes no document stale."""
    here = _choose({}, artifacts_path=str(write_hollow_models(tmp_path / "here")))
    there = _choose({"HF_HUB_CACHE": str(write_hollow_cache(tmp_path / "hub"))})
    options = ParsingOptions()

    assert here.identity("pdf", options) == there.identity("pdf", options)


def test_other_models_are_another_identity_also_in_the_same_place(tmp_path: Path):
    """A server that runs for weeks must see that they were replaced."""
    folder = write_hollow_models(tmp_path / "models")
    before = _choose({}, artifacts_path=str(folder)).identity("pdf", ParsingOptions())

    write_hollow_models(folder, LAYOUT, content=b"\x01" * 8)
    after = _choose({}, artifacts_path=str(folder)).identity("pdf", ParsingOptions())

    assert before["models"]["layout"] != after["models"]["layout"]
    assert before["models"]["tableformer"] == after["models"]["tableformer"]


def test_an_engine_travels_to_workers(tmp_path: Path):
    """And equals itself there, so that warm readers are found again."""
    engine = _choose({}, artifacts_path=str(write_hollow_models(tmp_path / "models")))

    travelled = pickle.loads(pickle.dumps(engine))

    assert travelled == engine
    assert hash(travelled) == hash(engine)


@pytest.mark.parametrize("left_out", ["url", "model"])
def test_a_vision_model_needs_an_address_and_a_name(left_out: str):
    """Before the first page is asked for."""
    with pytest.raises(ConfigError, match=rf"^parsing\.vlm\.{left_out}: not set"):
        _choose({}, pdf="vlm", vlm=SERVER.model_copy(update={left_out: ""}))


def test_a_key_that_is_not_in_the_environment_is_refused():
    """By the name of its variable."""
    with pytest.raises(ConfigError, match=r"^parsing\.vlm\.api_key_env: the environment has no VLM_KEY;"):
        _choose({}, pdf="vlm", vlm=SERVER.model_copy(update={"api_key_env": "VLM_KEY"}))


def test_a_key_with_a_line_break_is_refused_without_being_told():
    """`export VLM_KEY="$(cat key.txt)…"` happens; the line must not tell the key."""
    options = SERVER.model_copy(update={"api_key_env": "VLM_KEY"})

    with pytest.raises(ConfigError, match="VLM_KEY holds characters that no key has") as refusal:
        _choose({"VLM_KEY": "geheim\n"}, pdf="vlm", vlm=options)

    assert "geheim" not in str(refusal.value)


def test_pictures_are_left_to_the_embedded_engine_by_the_model_free_one():
    """They have no text of their own."""
    engine = _choose({}, pdf="native")

    assert (engine.reader_of("pdf"), engine.reader_of("image")) == ("native", "embedded")


def test_the_names_here_are_those_of_the_installed_docling(monkeypatch: pytest.MonkeyPatch):
    """An update of Docling that loads other files must not go unseen."""
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

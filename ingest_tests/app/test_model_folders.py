"""Model names and folders in the settings: relative to the home, and a one-line error if missing."""

from pathlib import Path

import pytest

from ingest_assets.app.home import open_home, resolve_model_folders
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.layout import Layout
from ingest_tests.embedders.tiny_models import make_model


def _home(folder: Path, settings: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "ingest.toml").write_text(settings)
    return folder


def test_a_relative_model_starts_at_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like the folder of a source, regardless of the current folder."""
    home = _home(tmp_path / "home", '[embeddings.dense]\nmodel = "models/tiny"\n')
    make_model(home / "models" / "tiny")
    monkeypatch.chdir(tmp_path)

    assert open_home(home).stages["dense"].footer()["model_id"].startswith("tiny@")


@pytest.mark.parametrize("cache", ["", "vectors", "/somewhere/else"])
def test_resolved_folders_are_the_same_in_another_home(cache: str, tmp_path: Path) -> None:
    """An evaluation has a separate home, and shares the models and the vector cache."""
    settings = f'[embeddings]\ncache = {{path = "{cache}"}}\n[embeddings.dense]\nmodel = "models/tiny"\n'
    home = open_home(_home(tmp_path / "home", settings))
    make_model(home.layout.home / "models" / "tiny")

    elsewhere = resolve_model_folders(home.resolved_settings, Layout(tmp_path / "evaluation"))

    assert elsewhere.embeddings == home.resolved_settings.embeddings
    assert elsewhere.embeddings.cache.path == str(home.layout.home / (cache or "state/cache"))


@pytest.mark.parametrize("setting", ["embeddings.dense.model", "embeddings.sparse.model", "chunks.tokenizer"])
def test_models_are_not_searched_in_the_current_folder(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the same settings could mean two models."""
    section, _, key = setting.rpartition(".")
    home = _home(tmp_path / "home", f'[{section}]\n{key} = "models/tiny"\n')
    make_model(tmp_path / "models" / "tiny")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))

    with pytest.raises(
        ConfigError, match=rf"^{setting}: 'models/tiny' is neither a folder \(relative to the home\)"
    ):
        _ = open_home(home).configuration_hash


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ('[embeddings.dense]\nprovider = "OpenAI"\n', "'OpenAI'. Known providers: auto, local, onnx"),
        ('[embeddings.lexical]\nlanguage = "german"\n', "for 'german'; use one of ar, ca, da, de"),
    ],
)
def test_the_error_for_an_unknown_name_lists_the_known_ones(settings: str, says: str, tmp_path: Path) -> None:
    """A regular expression would not help a user."""
    with pytest.raises(ConfigError, match=says):
        _ = open_home(_home(tmp_path, settings)).configuration_hash

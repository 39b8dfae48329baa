"""Names and folders of models in the settings: one base, and one line for what is not there."""

from pathlib import Path

import pytest

from ingest_assets.app.home import open_home, with_folders_found
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.layout import Layout
from ingest_tests.embedders.tiny_models import make_model


def _home(folder: Path, settings: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "ingest.toml").write_text(settings)
    return folder


def test_a_relative_model_starts_at_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a source does, wherever the command is given."""
    home = _home(tmp_path / "home", '[embeddings.dense]\nmodel = "models/tiny"\n')
    make_model(home / "models" / "tiny")
    monkeypatch.chdir(tmp_path)

    assert open_home(home).stages["dense"].footer()["model_id"].startswith("tiny@")


@pytest.mark.parametrize("cache", ["", "vectors", "/somewhere/else"])
def test_another_home_finds_what_this_one_finds(cache: str, tmp_path: Path) -> None:
    """An evaluation has a home of its own, and shares the models and the cache of vectors."""
    settings = f'[embeddings]\ncache = {{path = "{cache}"}}\n[embeddings.dense]\nmodel = "models/tiny"\n'
    home = open_home(_home(tmp_path / "home", settings))
    make_model(home.layout.home / "models" / "tiny")

    elsewhere = with_folders_found(home.settings_found, Layout(tmp_path / "evaluation"))

    assert elsewhere.embeddings == home.settings_found.embeddings
    assert elsewhere.embeddings.cache.path == str(home.layout.home / (cache or "state/cache"))


@pytest.mark.parametrize("setting", ["embeddings.dense.model", "embeddings.sparse.model", "chunks.tokenizer"])
def test_the_current_folder_is_not_looked_at(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the same settings would mean two models."""
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
        ('[embeddings.dense]\nprovider = "OpenAI"\n', "no provider 'OpenAI'; there are auto, local, onnx"),
        ('[embeddings.lexical]\nlanguage = "german"\n', "for 'german'; known are ar, ca, da, de"),
    ],
)
def test_a_name_that_is_none_is_answered_with_those_there_are(
    settings: str, says: str, tmp_path: Path
) -> None:
    """A pattern of letters helps nobody."""
    with pytest.raises(ConfigError, match=says):
        _ = open_home(_home(tmp_path, settings)).configuration_hash

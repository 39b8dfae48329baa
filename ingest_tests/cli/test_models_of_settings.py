"""`ingest models` and the models in the settings: found locally, or fetched from loopback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest_tests.conftest import Command
from ingest_tests.embedders.tiny_models import modules
from ingest_tests.parsing.model_hub import COMMIT, Hub, serving
from ingest_tests.weights import weights

pytestmark = pytest.mark.slow

DENSE, SPARSE = "bees/tiny-dense", "bees/tiny-splade"
NAMES = ("dense", "sparse", "tokenizer")
NOT_LOADED = {
    "README.md": b"words",
    "pytorch_model.bin": b"the same again",
    "tf_model.h5": b"the same again",
    "onnx/model.onnx": b"the same again",
    "onnx/config.json": b"{}",
}


def _model(**more: Any) -> dict[str, bytes]:
    """A repository; the weights are never opened, because planning reads the files next to them."""
    config = {"model_type": "bert", "hidden_size": 32, "max_position_embeddings": 64, "vocab_size": 99}
    files = {"config.json": {**config, "architectures": ["BertForMaskedLM"]}, "tokenizer.json": {}, **more}
    heavy = {"model.safetensors": weights(b"weights" * 1000)}
    return {**NOT_LOADED, **heavy, **{name: json.dumps(file).encode() for name, file in files.items()}}


REPOSITORIES = {
    DENSE: _model(
        **{
            "modules.json": modules("Transformer", "Pooling", "Normalize"),
            "sentence_bert_config.json": {"max_seq_length": 16},
            "1_Pooling/config.json": {"pooling_mode_cls_token": True},
        }
    ),
    SPARSE: _model(),
    "bees/only-onnx": {"config.json": b"{}", "tokenizer.json": b"{}", "onnx/model.onnx": b"x"},
}


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A hub with these models."""
    with serving(REPOSITORIES) as hub:
        yield hub


@pytest.fixture
def away(tmp_path: Path) -> dict[str, str]:
    """An environment with an empty hub cache, in which downloads are allowed."""
    return {"HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": ""}


def _settings(ingest: Command, dense: str = "", sparse: str = "", tokenizer: str = "") -> None:
    lines = [f'[embeddings.dense]\nmodel = "{dense}"'] if dense else []
    lines += [f'[embeddings.sparse]\nmodel = "{sparse}"'] if sparse else []
    lines += [f'[chunks]\ntokenizer = "{tokenizer}"'] if tokenizer else []
    (ingest.home / "ingest.toml").write_text("\n".join(lines))


def _listed(ingest: Command, away: dict[str, str]) -> dict[str, Any]:
    return {each["name"]: each for each in ingest.json("models", "list", **away)["embeddings"]}


def _fetched(hub: Hub) -> set[str]:
    return {
        request.partition(f"/{COMMIT}/")[2] for request in hub.requests if request.startswith("GET /bees")
    }


def test_by_default_vectors_come_from_the_packaged_model(ingest: Command, away: dict[str, str]):
    """The settings name no other, so there is nothing to fetch."""
    listed = _listed(ingest, away)

    assert list(listed) == ["dense"]
    found = listed["dense"]
    assert (found["where"], found["is_present"], found["fault"]) == ("packaged", True, None)
    assert (found["provider"], found["dim"], found["max_tokens"]) == ("onnx", 384, 256)


def test_models_that_the_hub_refuses_are_explained_one_by_one(
    ingest: Command, hub: Hub, away: dict[str, str]
):
    """A gated model, other formats only, an unknown name: each with what to do."""
    _settings(ingest, DENSE, "bees/only-onnx", "bees/unknown")
    hub.gated = {f"{DENSE}/model.safetensors"}
    environ = away | {"HF_ENDPOINT": hub.url}

    refused = ingest.apart("models", "pull", *NAMES, **environ, check=1)
    between = _listed(ingest, away)
    hub.gated = set()
    ingest.apart("models", "pull", "dense", **environ)

    gated, bare, unknown = refused.stderr.splitlines()
    assert gated.startswith(f"ingest: Cannot download dense ({DENSE}) from the model hub at {hub.url}: ")
    assert "status 403. It is gated: request access on its page, and set HF_TOKEN" in gated
    assert "has the model, but not weights in a supported format" in bare
    assert "status 404. Correct chunks.tokenizer, or set HF_TOKEN" in unknown
    assert [each["is_present"] for each in between.values()] == [False] * 3
    assert ". Run `ingest models pull sparse` to fetch it." in between["sparse"]["fault"]
    assert _listed(ingest, away)["dense"]["is_present"] is True


def test_models_of_the_settings_are_fetched_and_found_again(ingest: Command, hub: Hub, away: dict[str, str]):
    """Only files that are loaded; and once they are stored, a pull makes no request."""
    _settings(ingest, DENSE, SPARSE, SPARSE)
    environ = away | {"HF_ENDPOINT": hub.url}

    pulled = json.loads(ingest.apart("models", "pull", *NAMES, "--json", **environ).stdout)
    asked = len(hub.requests)
    again = ingest("models", "pull", *NAMES, **environ).stdout.splitlines()
    listed = _listed(ingest, away)

    assert {"model.safetensors", "1_Pooling/config.json", "tokenizer.json"} <= _fetched(hub)
    assert not _fetched(hub) & set(NOT_LOADED)
    assert (pulled["failures"], pulled["models"]) == ([], [])
    assert pulled["embeddings"] == list(listed.values())
    assert len(hub.requests) == asked
    assert [line.split()[0] for line in again] == list(NAMES)
    assert {(each["where"], each["revision"]) for each in listed.values()} == {("hub cache", COMMIT)}
    assert (listed["dense"]["dim"], listed["dense"]["max_tokens"]) == (32, 16)
    assert listed["dense"]["model_id"].startswith(f"{DENSE}@")
    assert (listed["sparse"]["provider"], listed["sparse"]["max_tokens"]) == ("local", 64)


def test_a_run_without_its_model_says_how_to_get_it(ingest: Command, away: dict[str, str], notes: Path):
    """One line, before anything is read."""
    _settings(ingest, "bees/never-pulled")

    done = ingest("all", "--input", notes, check=2, **away)

    assert "Run `ingest models pull dense` to fetch it." in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_a_network_pull_says_what_to_do_in_one_line(ingest: Command, away: dict[str, str]):
    """Even if there is more to fetch: that would fail in the same way."""
    _settings(ingest, DENSE, SPARSE)
    with serving({}) as gone:
        url = gone.url

    (line,) = ingest.apart("models", "pull", **away, HF_ENDPOINT=url, check=1).stderr.splitlines()

    assert line.startswith(f"ingest: Cannot download dense ({DENSE}) from the model hub at {url}: ")
    assert "cannot be reached: ConnectError. Run `ingest models pull dense` on a machine with network" in line
    assert line.endswith("copy the model's folder here and set embeddings.dense.model to it.")


def test_a_missing_folder_is_reported_and_other_models_are_fetched(ingest: Command, away: dict[str, str]):
    """The others do not depend on it."""
    _settings(ingest, tokenizer="no/such/folder")

    done = ingest("models", "pull", "dense", "tokenizer", **away, check=1)

    assert done.stdout.startswith("dense ")
    assert done.stderr.startswith("ingest: chunks.tokenizer: 'no/such/folder' is neither a folder (")


def test_a_model_of_an_endpoint_is_not_searched_locally(ingest: Command, hub: Hub, away: dict[str, str]):
    """Its name is only used by the endpoint."""
    (ingest.home / "ingest.toml").write_text(
        '[embeddings.dense]\nmodel = "bees/far"\ndim = 8\nremote.url = "http://127.0.0.1:9/v1/embeddings"\n'
    )

    found = _listed(ingest, away)["dense"]
    ingest("models", "pull", "dense", **away)

    assert (found["where"], found["provider"], found["dim"]) == ("elsewhere", "openai", 8)
    assert not hub.requests


def test_a_setting_that_names_nothing_has_nothing_to_fetch(ingest: Command):
    """The message says so."""
    done = ingest("models", "pull", "sparse", check=2)

    assert done.stderr == "ingest: sparse: embeddings.sparse.model names no model; set it first.\n"

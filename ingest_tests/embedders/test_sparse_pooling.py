"""Sparse vectors by the model's own pooling file, within a memory limit."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders import sparse
from ingest_assets.embedders.sparse import (
    SparseEmbedder,
    SparseVector,
    SpladePooling,
    read_sparse_model,
    within_memory,
)
from ingest_assets.settings.embeddings import SparseOptions
from ingest_assets.stages.sparse import SparseStage
from ingest_tests.embedders.tiny_splade import write_model

TEXTS = [
    "The bridge was inspected.",
    "Rust on the steel cable of the bridge, and stone in the river: repair it in winter.",
    "Soup.",
]
KINDS = [("max", "relu"), ("max", "log1p_relu"), ("sum", "relu"), ("sum", "log1p_relu")]
POOLING = "1_SpladePooling/config.json"
NETWORK = "sentence_transformers.sparse_encoder.models.MLMTransformer"
SPLADE = "sentence_transformers.sparse_encoder.models.SpladePooling"
MLM_FIRST = {"path": "", "type": NETWORK}
SPLADE_NEXT = {"path": "1_SpladePooling", "type": SPLADE}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model without a pooling file."""
    return write_model(tmp_path_factory.mktemp("models") / "tiny-splade")


@pytest.fixture
def folder(plain: Path, tmp_path: Path) -> Path:
    """A tiny model with a pooling file."""
    folder = Path(shutil.copytree(plain, tmp_path / "pooled"))
    write_json(folder, "modules.json", [MLM_FIRST, SPLADE_NEXT])
    write_json(folder, POOLING, {"pooling_strategy": "max", "activation_function": "relu"})
    return folder


def write_json(folder: Path, file: str, content: Any) -> None:
    """Write a file of a model folder."""
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(json.dumps(content))


def saved_by_the_library(plain: Path, folder: Path, strategy: Any, activation: Any) -> Any:
    """Save a model with sentence-transformers and load it again."""
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sparse_encoder.modules import SpladePooling as TheirPooling

    network = Transformer(str(plain), transformer_task="fill-mask")
    pooling = TheirPooling(pooling_strategy=strategy, activation_function=activation)
    SparseEncoder(modules=[network, pooling], device="cpu").save_pretrained(str(folder))
    return SparseEncoder(str(folder), device="cpu")


def embedded(folder: Path, texts: list[str]) -> np.ndarray:
    """Return the embedder's vectors, with their zeros."""
    dim = read_sparse_model(str(folder)).dim
    found = SparseEmbedder(SparseOptions(model=str(folder), top_k=dim, device="cpu")).embed(texts)
    return np.stack([whole(vector, dim) for vector in found])


def whole(vector: SparseVector, dim: int) -> np.ndarray:
    """Return a sparse vector with its zeros."""
    row = np.zeros(dim, dtype=np.float32)
    row[vector[0]] = vector[1]
    return row


@pytest.mark.parametrize(("strategy", "activation"), KINDS)
def test_weights_are_those_of_the_library(
    plain: Path, tmp_path: Path, strategy: str, activation: str
) -> None:
    """Byte-equal for a single text, within rounding for padded texts."""
    library = saved_by_the_library(plain, tmp_path / "saved", strategy, activation)

    alone = embedded(tmp_path / "saved", TEXTS[1:2])
    together = embedded(tmp_path / "saved", TEXTS)

    theirs = library.encode(TEXTS[1:2], convert_to_sparse_tensor=False).numpy()
    assert alone.tobytes() == theirs.tobytes()
    theirs = library.encode(TEXTS, convert_to_sparse_tensor=False).numpy()
    np.testing.assert_allclose(together, theirs, atol=1e-4)


def by_the_formula(logits: Any, is_padding: Any, strategy: str, activation: str) -> Any:
    """Compute each step on all logits."""
    import torch

    weights = torch.log1p(torch.relu(logits))
    weights = torch.log1p(weights) if activation == "log1p_relu" else weights
    weights = weights.masked_fill(is_padding, 0)
    return weights.amax(dim=1) if strategy == "max" else weights.sum(dim=1)


@pytest.mark.parametrize(("strategy", "activation"), KINDS)
def test_pooling_gives_the_bytes_of_the_formula(strategy: str, activation: str) -> None:
    """Taking the maximum first changes no bit."""
    import torch

    logits = torch.randn(7, 33, 1001, generator=torch.Generator().manual_seed(3)) * 9
    is_padding = torch.arange(33)[None, :, None] >= torch.tensor([33, 1, 5, 32, 20, 2, 9])[:, None, None]
    expected = by_the_formula(logits, is_padding, strategy, activation)

    found = SpladePooling(strategy == "sum", activation == "log1p_relu").weights(logits, is_padding)

    assert found.numpy().tobytes() == expected.numpy().tobytes()


@pytest.mark.parametrize(("strategy", "activation"), KINDS)
def test_nan_is_kept_unless_it_is_padding(strategy: str, activation: str) -> None:
    """The check of the weights must find it."""
    import torch

    logits, is_padding = torch.randn(2, 5, 9), torch.zeros(2, 5, 1, dtype=torch.bool)
    is_padding[1, 3:] = True
    logits[0, 4, 7] = logits[1, 4, 2] = float("nan")

    found = SpladePooling(strategy == "sum", activation == "log1p_relu").weights(logits, is_padding)

    assert found.isnan().nonzero().tolist() == [[0, 7]]


@pytest.mark.parametrize(("strategy", "activation"), KINDS)
def test_pooling_copies_no_logits(strategy: str, activation: str) -> None:
    """With a large vocabulary they take most of the memory."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    logits, is_padding = torch.randn(2, 64, 4096), torch.zeros(2, 64, 1, dtype=torch.bool)

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        SpladePooling(strategy == "sum", activation == "log1p_relu").weights(logits, is_padding)

    allocated = sum(max(0, event.self_cpu_memory_usage) for event in profiled.events())
    assert 0 < allocated < logits.nbytes / 16


def test_a_batch_is_limited_by_tokens_and_by_vocabulary() -> None:
    """The default does not change batches with BERT's vocabulary, so vectors stay the same."""
    assert within_memory(2048, 30_522) == 2048
    assert within_memory(2048, 250_002) == 536
    assert within_memory(9, 250_002) == 9
    assert within_memory(2048, 2**40) == 1


def test_the_memory_limit_changes_batches_and_rounding_only(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A longer text is alone and not cut."""
    usual = embedded(plain, TEXTS)
    dim = read_sparse_model(str(plain)).dim
    monkeypatch.setattr(sparse, "_MAX_LOGITS", 12 * dim)
    embedder = SparseEmbedder(SparseOptions(model=str(plain), top_k=dim, device="cpu"))
    shapes: list[tuple[int, ...]] = []
    embedder._network.register_forward_hook(lambda *args: shapes.append(tuple(args[-1].logits.shape[:2])))

    vectors = embedder.embed(TEXTS)

    assert len(shapes) > 1
    assert all(texts * tokens <= 12 or texts == 1 for texts, tokens in shapes)
    np.testing.assert_allclose([whole(vector, dim) for vector in vectors], usual, atol=1e-4)


def test_defaults_are_those_of_the_library(folder: Path, plain: Path) -> None:
    """Max and relu, as without a file; other keys change no weight."""
    write_json(folder, POOLING, {"word_embedding_dimension": None})

    assert read_sparse_model(str(folder)).pooling == read_sparse_model(str(plain)).pooling == SpladePooling()
    assert embedded(folder, TEXTS).tobytes() == embedded(plain, TEXTS).tobytes()


def test_a_network_in_a_subfolder_is_found(folder: Path) -> None:
    """By the path in modules.json."""
    expected = embedded(folder, TEXTS)
    inner = folder / "0_MLMTransformer"
    inner.mkdir()
    for file in [file for file in folder.iterdir() if file.is_file() and file.name != "modules.json"]:
        file.rename(inner / file.name)
    write_json(folder, "modules.json", [{**MLM_FIRST, "path": inner.name}, SPLADE_NEXT])

    assert read_sparse_model(str(folder)).name == "pooled"
    assert embedded(folder, TEXTS).tobytes() == expected.tobytes()


def test_another_pooling_makes_rows_stale(folder: Path) -> None:
    """The pooling file is part of the model's hash."""
    before = SparseStage(SparseOptions(model=str(folder))).config()
    write_json(folder, POOLING, {"pooling_strategy": "sum"})

    assert SparseStage(SparseOptions(model=str(folder))).config() != before


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        (POOLING, {"pooling_strategy": "mean"}, "has pooling_strategy 'mean'"),
        (POOLING, {"pooling_strategy": None}, "has pooling_strategy None"),
        (POOLING, {"pooling_strategy": ["max"]}, r"has pooling_strategy \['max'\]"),
        (POOLING, {"activation_function": "gelu"}, "has activation_function 'gelu'"),
        (POOLING, {"temperature": 2}, "has temperature 2"),
        (POOLING, ["max"], "cannot be used .not a JSON object"),
        ("modules.json", {"0": "MLMTransformer"}, "is not a list of modules"),
        ("modules.json", [], "lists nothing"),
        ("modules.json", [MLM_FIRST], "lists MLMTransformer, which is not supported"),
        ("modules.json", [{"path": "", "type": "sentence_transformers.models.Router"}], "lists Router, "),
        (
            "modules.json",
            [MLM_FIRST, SPLADE_NEXT, {"path": "2", "type": "sentence_transformers.models.Normalize"}],
            "lists MLMTransformer, SpladePooling, Normalize",
        ),
    ],
    ids=str,
)
def test_unsupported_values_are_rejected_in_one_line(
    folder: Path, file: str, content: Any, says: str
) -> None:
    """With the file and its value, before the first document."""
    write_json(folder, file, content)

    assert_refused(folder, file, says)


@pytest.mark.parametrize("task", ["feature-extraction", None])
def test_a_transformer_without_logits_is_rejected(folder: Path, task: str | None) -> None:
    """The library would pool its hidden states."""
    transformer = {"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}
    write_json(folder, "modules.json", [transformer, SPLADE_NEXT])
    write_json(folder, "sentence_bert_config.json", {"transformer_task": task} if task else {})

    assert_refused(folder, "sentence_bert_config.json", f"has transformer_task {task!r}")


def test_a_missing_pooling_file_is_rejected(folder: Path) -> None:
    """As in a partial copy of a folder."""
    (folder / POOLING).unlink()

    with pytest.raises(ConfigError, match=r"1_SpladePooling has no config.json. Set a complete model folder"):
        read_sparse_model(str(folder))


def test_an_invalid_path_is_rejected(folder: Path) -> None:
    """It is valid JSON, but not a string."""
    write_json(folder, "modules.json", [{**MLM_FIRST, "path": 7}, SPLADE_NEXT])

    with pytest.raises(ConfigError, match=r"^embeddings.sparse.model: the files in .* are invalid"):
        read_sparse_model(str(folder))


def assert_refused(folder: Path, file: str, says: str) -> None:
    """The stage rejects the folder in one line."""
    with pytest.raises(ConfigError, match=rf"^embeddings.sparse.model: .*{file} {says}") as raised:
        SparseStage(SparseOptions(model=str(folder)))

    assert len(str(raised.value).splitlines()) == 1

"""Sparse vectors by the model's own pooling file, as its library makes them, within a bound of memory."""

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
    sparse_model,
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
    """A tiny model without a word of how it is pooled."""
    return write_model(tmp_path_factory.mktemp("models") / "tiny-splade")


@pytest.fixture
def folder(plain: Path, tmp_path: Path) -> Path:
    """The same, with a pooling file."""
    folder = Path(shutil.copytree(plain, tmp_path / "pooled"))
    say(folder, "modules.json", [MLM_FIRST, SPLADE_NEXT])
    say(folder, POOLING, {"pooling_strategy": "max", "activation_function": "relu"})
    return folder


def say(folder: Path, file: str, content: Any) -> None:
    """Write a file of a model folder."""
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(json.dumps(content))


def saved_by_the_library(plain: Path, folder: Path, strategy: Any, activation: Any) -> Any:
    """A model as sentence-transformers writes it, opened again by the same."""
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sparse_encoder.modules import SpladePooling as TheirPooling

    network = Transformer(str(plain), transformer_task="fill-mask")
    pooling = TheirPooling(pooling_strategy=strategy, activation_function=activation)
    SparseEncoder(modules=[network, pooling], device="cpu").save_pretrained(str(folder))
    return SparseEncoder(str(folder), device="cpu")


def embedded(folder: Path, texts: list[str]) -> np.ndarray:
    """What the embedder gives, with the zeros."""
    dim = sparse_model(str(folder)).dim
    found = SparseEmbedder(SparseOptions(model=str(folder), top_k=dim, device="cpu")).embed(texts)
    return np.stack([whole(vector, dim) for vector in found])


def whole(vector: SparseVector, dim: int) -> np.ndarray:
    """A sparse vector with its zeros."""
    row = np.zeros(dim, dtype=np.float32)
    row[vector[0]] = vector[1]
    return row


@pytest.mark.parametrize(("strategy", "activation"), KINDS)
def test_weights_are_those_of_the_library(
    plain: Path, tmp_path: Path, strategy: str, activation: str
) -> None:
    """To the byte for a text alone, and within rounding for texts that are padded."""
    library = saved_by_the_library(plain, tmp_path / "saved", strategy, activation)

    alone = embedded(tmp_path / "saved", TEXTS[1:2])
    together = embedded(tmp_path / "saved", TEXTS)

    theirs = library.encode(TEXTS[1:2], convert_to_sparse_tensor=False).numpy()
    assert alone.tobytes() == theirs.tobytes()
    theirs = library.encode(TEXTS, convert_to_sparse_tensor=False).numpy()
    np.testing.assert_allclose(together, theirs, atol=1e-4)


def by_the_formula(logits: Any, is_padding: Any, strategy: str, activation: str) -> Any:
    """Each step on the whole logits."""
    import torch

    weights = torch.log1p(torch.relu(logits))
    weights = torch.log1p(weights) if activation == "log1p_relu" else weights
    weights = weights.masked_fill(is_padding, 0)
    return weights.amax(dim=1) if strategy == "max" else weights.sum(dim=1)


@pytest.mark.parametrize(("strategy", "activation"), KINDS)
def test_pooling_gives_the_bytes_of_the_formula(strategy: str, activation: str) -> None:
    """Taking the greatest first changes no bit."""
    import torch

    logits = torch.randn(7, 33, 1001, generator=torch.Generator().manual_seed(3)) * 9
    is_padding = torch.arange(33)[None, :, None] >= torch.tensor([33, 1, 5, 32, 20, 2, 9])[:, None, None]
    expected = by_the_formula(logits, is_padding, strategy, activation)

    found = SpladePooling(strategy == "sum", activation == "log1p_relu").weights(logits, is_padding)

    assert found.numpy().tobytes() == expected.numpy().tobytes()


@pytest.mark.parametrize(("strategy", "activation"), KINDS)
def test_what_is_no_number_stays_so_unless_it_is_padding(strategy: str, activation: str) -> None:
    """Whoever checks the weights must see it."""
    import torch

    logits, is_padding = torch.randn(2, 5, 9), torch.zeros(2, 5, 1, dtype=torch.bool)
    is_padding[1, 3:] = True
    logits[0, 4, 7] = logits[1, 4, 2] = float("nan")

    found = SpladePooling(strategy == "sum", activation == "log1p_relu").weights(logits, is_padding)

    assert found.isnan().nonzero().tolist() == [[0, 7]]


@pytest.mark.parametrize(("strategy", "activation"), KINDS)
def test_pooling_copies_no_logits(strategy: str, activation: str) -> None:
    """With a great vocabulary they are the greatest thing in memory."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    logits, is_padding = torch.randn(2, 64, 4096), torch.zeros(2, 64, 1, dtype=torch.bool)

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        SpladePooling(strategy == "sum", activation == "log1p_relu").weights(logits, is_padding)

    taken = sum(max(0, event.self_cpu_memory_usage) for event in seen.events())
    assert 0 < taken < logits.nbytes / 16


def test_a_batch_is_bounded_by_tokens_and_by_vocabulary() -> None:
    """The default holds for a vocabulary of BERT's size, so that its vectors stay what they were."""
    assert within_memory(2048, 30_522) == 2048
    assert within_memory(2048, 250_002) == 536
    assert within_memory(9, 250_002) == 9
    assert within_memory(2048, 2**40) == 1


def test_the_bound_of_memory_changes_batches_and_rounding_only(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text past it is alone, and whole."""
    usual = embedded(plain, TEXTS)
    dim = sparse_model(str(plain)).dim
    monkeypatch.setattr(sparse, "_MAX_LOGITS", 12 * dim)
    embedder = SparseEmbedder(SparseOptions(model=str(plain), top_k=dim, device="cpu"))
    seen: list[tuple[int, ...]] = []
    embedder._network.register_forward_hook(lambda *given: seen.append(tuple(given[-1].logits.shape[:2])))

    found = embedder.embed(TEXTS)

    assert len(seen) > 1
    assert all(texts * tokens <= 12 or texts == 1 for texts, tokens in seen)
    np.testing.assert_allclose([whole(vector, dim) for vector in found], usual, atol=1e-4)


def test_without_a_value_the_librarys_own_is_taken(folder: Path, plain: Path) -> None:
    """Max and relu, as without a file; what else the file may say changes no weight."""
    say(folder, POOLING, {"word_embedding_dimension": None})

    assert sparse_model(str(folder)).pooling == sparse_model(str(plain)).pooling == SpladePooling()
    assert embedded(folder, TEXTS).tobytes() == embedded(plain, TEXTS).tobytes()


def test_a_network_in_a_folder_of_its_own_is_found(folder: Path) -> None:
    """Where the list of modules says it is."""
    expected = embedded(folder, TEXTS)
    inner = folder / "0_MLMTransformer"
    inner.mkdir()
    for file in [file for file in folder.iterdir() if file.is_file() and file.name != "modules.json"]:
        file.rename(inner / file.name)
    say(folder, "modules.json", [{**MLM_FIRST, "path": inner.name}, SPLADE_NEXT])

    assert sparse_model(str(folder)).name == "pooled"
    assert embedded(folder, TEXTS).tobytes() == expected.tobytes()


def test_another_pooling_makes_rows_stale(folder: Path) -> None:
    """The file is part of what identifies the model."""
    before = SparseStage(SparseOptions(model=str(folder))).config()
    say(folder, POOLING, {"pooling_strategy": "sum"})

    assert SparseStage(SparseOptions(model=str(folder))).config() != before


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        (POOLING, {"pooling_strategy": "mean"}, "says pooling_strategy 'mean'"),
        (POOLING, {"pooling_strategy": None}, "says pooling_strategy None"),
        (POOLING, {"pooling_strategy": ["max"]}, r"says pooling_strategy \['max'\]"),
        (POOLING, {"activation_function": "gelu"}, "says activation_function 'gelu'"),
        (POOLING, {"temperature": 2}, "says temperature 2"),
        (POOLING, ["max"], "cannot be used .not a JSON object"),
        ("modules.json", {"0": "MLMTransformer"}, "is no list of modules"),
        ("modules.json", [], "lists nothing"),
        ("modules.json", [MLM_FIRST], "lists MLMTransformer, which is not run here"),
        ("modules.json", [{"path": "", "type": "sentence_transformers.models.Router"}], "lists Router, "),
        (
            "modules.json",
            [MLM_FIRST, SPLADE_NEXT, {"path": "2", "type": "sentence_transformers.models.Normalize"}],
            "lists MLMTransformer, SpladePooling, Normalize",
        ),
    ],
    ids=str,
)
def test_what_is_not_done_is_refused_in_one_line(folder: Path, file: str, content: Any, says: str) -> None:
    """With the file and what it says, before the first document."""
    say(folder, file, content)

    assert_refused(folder, file, says)


@pytest.mark.parametrize("task", ["feature-extraction", None])
def test_a_transformer_that_gives_no_logits_is_refused(folder: Path, task: str | None) -> None:
    """Its library would pool hidden states."""
    transformer = {"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}
    say(folder, "modules.json", [transformer, SPLADE_NEXT])
    say(folder, "sentence_bert_config.json", {"transformer_task": task} if task else {})

    assert_refused(folder, "sentence_bert_config.json", f"says transformer_task {task!r}")


def test_a_pooling_file_that_is_not_there_is_refused(folder: Path) -> None:
    """A folder that was copied in part."""
    (folder / POOLING).unlink()

    with pytest.raises(
        ConfigError, match=r"1_SpladePooling has no config.json; give a complete model folder"
    ):
        sparse_model(str(folder))


def test_a_path_that_is_none_is_refused(folder: Path) -> None:
    """JSON, and still senseless."""
    say(folder, "modules.json", [{**MLM_FIRST, "path": 7}, SPLADE_NEXT])

    with pytest.raises(ConfigError, match=r"^embeddings.sparse.model: the files of .* make no sense"):
        sparse_model(str(folder))


def assert_refused(folder: Path, file: str, says: str) -> None:
    """By the stage, in one line."""
    with pytest.raises(ConfigError, match=rf"^embeddings.sparse.model: .*{file} {says}") as raised:
        SparseStage(SparseOptions(model=str(folder)))

    assert len(str(raised.value).splitlines()) == 1

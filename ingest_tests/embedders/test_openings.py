"""A process opens a model once, and does not retry a failed one for every document."""

import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.embedders.errors import ModelUnusable
from ingest_assets.embedders.providers import OpenModels
from ingest_assets.embedders.sparse import open_sparse
from ingest_assets.settings.embeddings import SparseOptions
from ingest_tests.embedders.tiny_splade import write_model


def test_an_open_model_is_shared_until_it_is_removed() -> None:
    """By its key only."""
    models: OpenModels[str, object] = OpenModels()
    first = models.get("a", "model a", object)

    assert models.get("a", "model a", object) is first
    assert models.get("b", "model b", object) is not first
    assert models.remove(lambda key: key == "a") == [first]
    assert models.get("a", "model a", object) is not first


@pytest.mark.parametrize(
    ("error", "tries"), [(RuntimeError("no memory"), 1), (ItemError("busy"), 3)], ids=str
)
def test_a_model_that_cannot_be_opened_is_tried_once_for_all_callers(error: Exception, tries: int) -> None:
    """An attempt can take a minute; a busy endpoint can be retried at once."""
    models: OpenModels[str, object] = OpenModels()
    attempts: list[int] = []

    def fail() -> object:
        attempts.append(1)
        raise error

    for _ in range(3):
        with pytest.raises(ItemError, match=r"no memory|busy"):
            models.get("a", "model a", fail)

    assert len(attempts) == tries


def test_a_sparse_model_that_cannot_be_opened_is_a_config_error(tmp_path, monkeypatch) -> None:
    """Neither the document's fault nor an unknown error."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # also on a machine with a GPU
    options = SparseOptions(model=str(write_model(tmp_path / "model")), device="cuda")

    with pytest.raises(ModelUnusable, match=r"^embeddings.sparse.device: cuda is not available"):
        open_sparse(options)

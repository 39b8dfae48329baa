"""A process opens a model once, and does not try again and again what cannot be opened."""

import pytest

from ingest_assets.core.errors import ItemError
from ingest_assets.embedders.errors import ModelUnusable
from ingest_assets.embedders.providers import Openings
from ingest_assets.embedders.sparse import open_sparse
from ingest_assets.settings.embeddings import SparseOptions
from ingest_tests.embedders.tiny_splade import write_model


def test_what_is_open_is_shared_until_it_is_taken() -> None:
    """By its key alone."""
    openings: Openings[str, object] = Openings()
    first = openings.get("a", "model a", object)

    assert openings.get("a", "model a", object) is first
    assert openings.get("b", "model b", object) is not first
    assert openings.take(lambda key: key == "a") == [first]
    assert openings.get("a", "model a", object) is not first


@pytest.mark.parametrize(
    ("error", "tries"), [(RuntimeError("no memory"), 1), (ItemError("busy"), 3)], ids=str
)
def test_what_cannot_be_opened_is_tried_once_for_all_who_ask(error: Exception, tries: int) -> None:
    """Each try may take a minute; an endpoint that is busy may be asked again."""
    openings: Openings[str, object] = Openings()
    made: list[int] = []

    def fail() -> object:
        made.append(1)
        raise error

    for _ in range(3):
        with pytest.raises(ItemError, match=r"no memory|busy"):
            openings.get("a", "model a", fail)

    assert len(made) == tries


def test_a_sparse_model_that_cannot_be_opened_is_the_settings_fault(tmp_path, monkeypatch) -> None:
    """Not the document's, and no unknown error."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # also where there is one
    options = SparseOptions(model=str(write_model(tmp_path / "model")), device="cuda")

    with pytest.raises(ModelUnusable, match=r"^embeddings.sparse.device: there is no cuda here"):
        open_sparse(options)

"""The settings of the `openai` provider: what they must say, and what of them is in the identity."""

import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.errors import EndpointKeyMissing
from ingest_assets.embedders.providers import describe_dense
from ingest_assets.embedders.remote import RemoteEmbedder
from ingest_assets.settings.embeddings import DenseOptions, RemoteOptions
from ingest_tests.embedders.vector_server import QUICK, options_for


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dim": None}, "embeddings.dense.dim: not set"),
        ({"remote": RemoteOptions()}, "embeddings.dense.remote.url: not set"),
        ({"model": DenseOptions().model}, "embeddings.dense.model: set it"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_anything_starts(change: dict[str, object], words: str):
    """Planning asks no endpoint, so the settings must say what it gives."""
    with pytest.raises(ConfigError, match=words):
        describe_dense(options_for("http://127.0.0.1:9/v1").model_copy(update=change))


@pytest.mark.parametrize(
    "url", ["localhost:80", "ftp://host/x", "http://user:pass@host/", "http://", "http://h/#x"]
)
def test_an_address_holds_no_secret_and_is_one(url: str):
    """Settings are shown."""
    with pytest.raises(ValueError, match="should be an http"):
        RemoteOptions(url=url)


def test_the_identity_follows_what_changes_vectors_and_nothing_else():
    """The key, the pace and the price are none of a vector's business."""
    base = options_for("http://host/v1/embeddings")

    def identity(options: DenseOptions) -> object:
        return describe_dense(options).identity

    def with_remote(**change: object) -> DenseOptions:
        return base.model_copy(update={"remote": base.remote.model_copy(update=change)})

    for change in (
        {"api_key_env": "K"},
        {"batch_size": 1},
        {"timeout_seconds": 1},
        {"usd_per_million_tokens": 1},
    ):
        assert identity(with_remote(**change)) == identity(base)
    assert identity(with_remote(url="http://other/v1/embeddings")) != identity(base)
    assert identity(with_remote(url="http://host/v1/embeddings?deployment=b")) != identity(base)
    assert identity(with_remote(url="http://a/", name="n")) == identity(
        with_remote(url="http://b/", name="n")
    )
    assert identity(base.model_copy(update={"model": "other"})) != identity(base)
    assert identity(base.model_copy(update={"passage_prefix": "p: "})) != identity(base)
    assert "secret" not in str(identity(with_remote(url="http://host/?key=secret")))


@pytest.mark.parametrize("environ", [{}, {"KEY": ""}, {"KEY": " spaced "}, {"KEY": "schlüssel"}])
def test_a_key_that_is_not_there_is_named(environ: dict[str, str]):
    """By its variable, never by its value."""
    with pytest.raises(EndpointKeyMissing, match="KEY") as caught:
        RemoteEmbedder(options_for("http://127.0.0.1:9/", api_key_env="KEY"), environ, QUICK)

    assert caught.value.category == "config"

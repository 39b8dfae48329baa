"""Dense vectors from any endpoint that speaks OpenAI's protocol: OpenAI, TEI, vLLM and others."""

import os
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import numpy as np
from pydantic import SecretStr

from ingest_assets.embedders.batching import Batcher
from ingest_assets.embedders.endpoint_errors import EndpointKeyMissing
from ingest_assets.embedders.pacing import Pace
from ingest_assets.embedders.recovery import Recovery
from ingest_assets.model.embedding import PACKAGED_MODEL, DenseFacts, DenseOptions, Kind, RemoteOptions
from ingest_assets.model.endpoints import key_fault
from ingest_assets.model.errors import ConfigError
from ingest_assets.model.identity import sha256_text

_BYTES_PER_TOKEN = 3  # few enough for most languages: requests stay below the limit rather than above


class RemoteKind:
    """Planning asks nobody: what the endpoint gives must be in the settings."""

    def describe(self, options: DenseOptions) -> DenseFacts:
        dim = _require_settings(options)
        remote = options.remote
        return DenseFacts(
            provider="openai",
            model_id=_model_id(options),
            dim=dim,
            max_tokens=options.max_tokens,
            tokenizer=None,
            normalized=options.normalize,
            identity={
                "provider": "openai",
                "endpoint": remote.name or _place(remote),
                "model": options.model,
                "dim": dim,
                "send_dimensions": remote.send_dimensions,
                "passage_prefix": options.passage_prefix or "",
                "normalized": options.normalize,
            },
            passage_prefix=options.passage_prefix or "",
        )

    def open(self, options: DenseOptions) -> "RemoteEmbedder":
        _require_settings(options)
        return RemoteEmbedder(options, os.environ)


class RemoteEmbedder:
    """Texts of several documents share requests; each text's vector or fault is its own."""

    def __init__(self, options: DenseOptions, environ: Mapping[str, str], pace: Pace | None = None) -> None:
        remote = options.remote
        self.model_id = _model_id(options)
        self.dim = options.dim or 0
        self._prefixes = {"query": options.query_prefix or "", "passage": options.passage_prefix or ""}
        self._recovery = Recovery(options, _key(remote, environ), pace or Pace(), estimated_tokens)
        self._batcher: Batcher[str] = Batcher(
            self._recovery.embed,
            estimated_tokens,
            lanes=remote.max_in_flight,
            batch_tokens=remote.batch_tokens,
            batch_size=remote.batch_size,
        )

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> np.ndarray:
        """One row per text, in their order."""
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        return self._batcher.embed([self._prefixes[kind] + text for text in texts])

    def close(self) -> None:
        """End at once, also what waits for its turn or for the server."""
        self._recovery.close()
        self._batcher.close()


def estimated_tokens(texts: Sequence[str]) -> list[int]:
    """By size: the tokenizer is the endpoint's."""
    return [len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN + 1 for text in texts]


def _require_settings(options: DenseOptions) -> int:
    if not options.remote.url:
        raise ConfigError('embeddings.dense.remote.url: not set, and provider = "openai" needs it.')
    if options.model == PACKAGED_MODEL:
        raise ConfigError(
            "embeddings.dense.model: set it to what the endpoint calls its model, as in "
            "text-embedding-3-small."
        )
    if options.dim is None:
        raise ConfigError(
            f"embeddings.dense.dim: not set; give the length of the vectors that {options.model} makes, for "
            "planning asks no endpoint."
        )
    return options.dim


def _model_id(options: DenseOptions) -> str:
    return f"{options.model}@{options.remote.name or urlsplit(options.remote.url).netloc}"


def _place(remote: RemoteOptions) -> str:
    """Where the model answers, without what a query may hold."""
    parts = urlsplit(remote.url)
    query = f"?{sha256_text(parts.query)[:12]}" if parts.query else ""
    return f"{parts.netloc}{parts.path}{query}"


def _key(remote: RemoteOptions, environ: Mapping[str, str]) -> SecretStr | None:
    """From this worker's own environment: it travels with no plan and rests in no file."""
    fault = key_fault(remote.api_key_env, environ)
    if fault:
        raise EndpointKeyMissing(
            f"embeddings.dense.remote.api_key_env: on this worker {fault}; set it where workers run."
        )
    return SecretStr(environ[remote.api_key_env]) if remote.api_key_env else None

"""Dense vectors from an endpoint with OpenAI's protocol: OpenAI, TEI, vLLM and others."""

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np
from pydantic import SecretStr

from ingest_assets.core.endpoints import find_key_fault
from ingest_assets.core.errors import ConfigError, ItemError
from ingest_assets.core.identity import sha256_text
from ingest_assets.embedders.batcher import Batcher, Counted
from ingest_assets.embedders.endpoint import Endpoint, Pace, Spent, estimated_tokens
from ingest_assets.embedders.errors import (
    EndpointAnswerUnusable,
    EndpointDenied,
    EndpointFailed,
    EndpointKeyMissing,
    EndpointRefused,
    EndpointTimeout,
    EndpointUnreachable,
    TextRefused,
    TextUnanswered,
    VectorUnusable,
    WrongDimension,
    WrongLength,
)
from ingest_assets.settings.embeddings import PACKAGED_MODEL, DenseFacts, DenseOptions, TextKind

PROBE_TEXT = "text"  # if it fails as well, the endpoint is at fault and not a text
# Without `EndpointBusy` itself: a server that asks for a pause means all requests, whatever their texts.
_MAYBE_TEXT_FAULT = (
    EndpointDenied,  # a gateway can return this for a single text that it blocks
    EndpointFailed,
    EndpointTimeout,
    EndpointUnreachable,
    EndpointAnswerUnusable,
    TextRefused,
    VectorUnusable,
)


@dataclass(eq=False)
class _Batch:
    """State of a batch while it is sent, as a whole or in pieces."""

    size: int
    spent: Spent = field(default_factory=Spent)
    fault: ItemError | None = None  # of the endpoint: the remaining texts would get it too
    ends_at: float | None = None  # deadline of the search for the failing text; set when it starts


class RemoteEmbedder:
    """Embeds texts of several documents in shared requests; each text gets its own vector or error.

    If a batch fails but a probe succeeds, the batch is halved until the failing text is found. As the
    endpoint is up, the pieces are not retried.
    """

    def __init__(self, options: DenseOptions, environ: Mapping[str, str], pace: Pace | None = None) -> None:
        self._remote = options.remote
        self.model_id = _model_id(options)
        self.dim = options.dim or 0
        self._prefixes = {"query": options.query_prefix or "", "passage": options.passage_prefix or ""}
        # The key comes from this worker's environment; it is never part of a plan or a file.
        variable = options.remote.api_key_env
        fault = find_key_fault(variable, environ)
        if fault:
            raise EndpointKeyMissing(
                f"embeddings.dense.remote.api_key_env: on this worker {fault}. Set it where workers run."
            )
        self._endpoint = Endpoint(options, SecretStr(environ[variable]) if variable else None, pace or Pace())
        self._probe_lock = threading.Lock()
        self._max_texts = options.remote.batch_size
        self._batcher: Batcher[str] = Batcher(
            self.embed_batch,
            estimated_tokens,
            lanes=options.remote.max_in_flight,
            batch_tokens=options.remote.batch_tokens,
            batch_size=options.remote.batch_size,
        )

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> np.ndarray:
        """Return one row per text, in order."""
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        return self._batcher.embed([self._prefixes[kind] + text for text in texts])

    def embed_batch(self, texts: Sequence[str]) -> list[Counted | ItemError]:
        """Return each text's vector with its cost, or its error."""
        results: list[Counted | ItemError] = []
        max_texts = self._max_texts
        for start in range(0, len(texts), max_texts):
            piece = texts[start : start + max_texts]
            batch = _Batch(len(piece))
            outcomes = self._outcomes(piece, batch)
            costs = {
                "requests": batch.spent.requests,
                "request_retries": batch.spent.retries,
                "tokens": batch.spent.tokens,
                "cost_micro_usd": round(batch.spent.tokens * self._remote.usd_per_million_tokens),
            }
            # The texts with a vector share the cost in proportion to their size.
            sizes = [
                0 if isinstance(outcome, ItemError) else size
                for outcome, size in zip(outcomes, estimated_tokens(piece), strict=True)
            ]
            shares = {name: _shares(total, sizes) for name, total in costs.items() if total}
            for outcome in outcomes:
                spent = {name: next(share) for name, share in shares.items()}
                results.append(outcome if isinstance(outcome, ItemError) else Counted(outcome, spent))
        return results

    def close(self) -> None:
        """Cancel requests and waiting calls at once."""
        self._endpoint.close()
        self._batcher.close()

    def _outcomes(self, texts: Sequence[str], batch: _Batch) -> list[np.ndarray | ItemError]:
        """Return a vector or an error for each text."""
        if batch.fault is not None:
            return [batch.fault] * len(texts)
        try:
            return list(self._endpoint.embed(texts, batch.spent, can_retry=batch.ends_at is None))
        except ItemError as error:
            return self._outcomes_after(texts, batch, error)

    def _outcomes_after(
        self, texts: Sequence[str], batch: _Batch, failure: ItemError
    ) -> list[np.ndarray | ItemError]:
        """Return the outcomes after a failed request: one fault for all texts, or those of the halves."""
        is_first, is_alone, now = batch.ends_at is None, len(texts) == 1, time.monotonic()
        if batch.ends_at is None:
            # Long enough to find two texts, even if each piece that contains one times out.
            batch.ends_at = now + 2 * (len(texts).bit_length() + 1) * self._remote.timeout_seconds
        if not isinstance(failure, _MAYBE_TEXT_FAULT):
            batch.fault = failure
            self._endpoint.report_fault(failure)
        elif now >= batch.ends_at:
            batch.fault = failure
        elif is_first or is_alone:
            batch.fault = self._probe_fault(batch)
        if batch.fault is not None:
            return [batch.fault] * len(texts)
        if is_first:
            return self._outcomes(texts, batch)  # the endpoint may have recovered
        if is_alone:
            return [_text_error(failure)]
        middle = (len(texts) + 1) // 2
        outcomes = self._outcomes(texts[:middle], batch) + self._outcomes(texts[middle:], batch)
        if len(texts) == batch.size and not any(isinstance(outcome, ItemError) for outcome in outcomes):
            # Each text is accepted, so the batch was too large; send smaller ones from now on.
            self._max_texts = min(self._max_texts, middle)
        return outcomes

    def _probe_fault(self, batch: _Batch) -> ItemError | None:
        """Send a short test text; return its error, which is the endpoint's fault, or None if it succeeds."""
        with self._probe_lock:  # threads with the same fault share one probe
            try:
                self._endpoint.embed([PROBE_TEXT], batch.spent, can_retry=False)
                return None
            except TextRefused as error:
                fault: ItemError = EndpointRefused(
                    f"{str(error)[:-1]}, also for a short test text. Check model, dim and remote in "
                    "embeddings.dense."
                )
            except WrongLength as error:
                fault = WrongDimension(
                    f"{str(error)[:-1]}, the value of embeddings.dense.dim. Set dim to the model's length, "
                    "or remote.send_dimensions if the model supports other lengths."
                )
            except VectorUnusable as error:
                fault = EndpointAnswerUnusable(str(error))
            except ItemError as error:
                fault = error
            self._endpoint.report_fault(fault)
            return fault


def _text_error(failure: ItemError) -> ItemError:
    """Return the failure as an error of this one text."""
    if isinstance(failure, VectorUnusable):
        return failure
    if isinstance(failure, (TextRefused, EndpointDenied)):
        return TextRefused(f"{failure} The endpoint rejects only this text: a test text succeeded.")
    return TextUnanswered(f"{failure} The endpoint fails on this text only: a test text succeeded.")


def _shares(total: int, weights: Sequence[int]) -> Iterator[int]:
    """Yield integers in proportion to the weights; their sum is the total."""
    before, sofar, everything = 0, 0, sum(weights) or 1
    for weight in weights:
        sofar += weight
        after = total * sofar // everything
        yield after - before
        before = after


class RemoteFactory:
    """Planning sends no request, so the model and its vector length must be set."""

    def describe(self, options: DenseOptions) -> DenseFacts:
        dim, remote = _require_settings(options), options.remote
        # The URL, with its query hashed, since that can contain secrets.
        parts = urlsplit(remote.url)
        query = f"?{sha256_text(parts.query)[:12]}" if parts.query else ""
        return DenseFacts(
            provider="openai",
            model_id=_model_id(options),
            dim=dim,
            max_tokens=options.max_tokens,
            tokenizer=None,
            normalized=options.normalize,
            identity={
                "provider": "openai",
                "endpoint": remote.name or f"{parts.netloc}{parts.path}{query}",
                "model": options.model,
                "dim": dim,
                "send_dimensions": remote.send_dimensions,
                "passage_prefix": options.passage_prefix or "",
                "normalized": options.normalize,
            },
            passage_prefix=options.passage_prefix or "",
        )

    def open(self, options: DenseOptions) -> RemoteEmbedder:
        _require_settings(options)
        return RemoteEmbedder(options, os.environ)


def _require_settings(options: DenseOptions) -> int:
    if not options.remote.url:
        raise ConfigError('embeddings.dense.remote.url: not set, but provider = "openai" needs it.')
    if options.model == PACKAGED_MODEL:
        raise ConfigError(
            "embeddings.dense.model: set it to the endpoint's name of the model, such as "
            "text-embedding-3-small."
        )
    if options.dim is None:
        raise ConfigError(
            f"embeddings.dense.dim: not set. Set it to the vector length of {options.model}, because "
            "planning sends no request."
        )
    return options.dim


def _model_id(options: DenseOptions) -> str:
    return f"{options.model}@{options.remote.name or urlsplit(options.remote.url).netloc}"

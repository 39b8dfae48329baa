"""Dense vectors from any endpoint that speaks OpenAI's protocol: OpenAI, TEI, vLLM and others."""

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np
from pydantic import SecretStr

from ingest_assets.core.endpoints import key_fault
from ingest_assets.core.errors import ConfigError, ItemError
from ingest_assets.core.identity import sha256_text
from ingest_assets.embedders.batching import Batcher, Counted
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
from ingest_assets.settings.embeddings import PACKAGED_MODEL, DenseFacts, DenseOptions, Kind

HARMLESS = "text"  # sent to find out whether a fault is the endpoint's or a text's
# Not `EndpointBusy` itself: a server that asks for a pause means all who ask, whatever their texts are.
_MAYBE_ONE_TEXT = (
    EndpointDenied,  # a gateway may answer so to one text that it blocks
    EndpointFailed,
    EndpointTimeout,
    EndpointUnreachable,
    EndpointAnswerUnusable,
    TextRefused,
    VectorUnusable,
)


@dataclass(eq=False)
class _Batch:
    """What is known of some texts while they are asked for, together or in pieces."""

    size: int
    spent: Spent = field(default_factory=Spent)
    fault: ItemError | None = None  # the endpoint's own: what was not asked for yet would meet it too
    ends_at: float | None = None  # of the search for the text at fault, which has one attempt a piece


class RemoteEmbedder:
    """Texts of several documents share requests; each text's vector or error is its own.

    When a batch fails and the endpoint answers a harmless text, the batch is halved until the text at fault
    stands alone. As the endpoint is up, each piece has one attempt.
    """

    def __init__(self, options: DenseOptions, environ: Mapping[str, str], pace: Pace | None = None) -> None:
        self._remote = options.remote
        self.model_id = _model_id(options)
        self.dim = options.dim or 0
        self._prefixes = {"query": options.query_prefix or "", "passage": options.passage_prefix or ""}
        # From this worker's own environment: the key is in no plan and in no file.
        variable = options.remote.api_key_env
        fault = key_fault(variable, environ)
        if fault:
            raise EndpointKeyMissing(
                f"embeddings.dense.remote.api_key_env: on this worker {fault}; set it where workers run."
            )
        self._endpoint = Endpoint(options, SecretStr(environ[variable]) if variable else None, pace or Pace())
        self._probing = threading.Lock()
        self._most_texts = options.remote.batch_size
        self._batcher: Batcher[str] = Batcher(
            self.embed_batch,
            estimated_tokens,
            lanes=options.remote.max_in_flight,
            batch_tokens=options.remote.batch_tokens,
            batch_size=options.remote.batch_size,
        )

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> np.ndarray:
        """One row per text, in their order."""
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        return self._batcher.embed([self._prefixes[kind] + text for text in texts])

    def embed_batch(self, texts: Sequence[str]) -> list[Counted | ItemError]:
        """For each text its vector with what it cost, or its error."""
        results: list[Counted | ItemError] = []
        most = self._most_texts
        for start in range(0, len(texts), most):
            piece = texts[start : start + most]
            batch = _Batch(len(piece))
            outcomes = self._outcomes(piece, batch)
            costs = {
                "requests": batch.spent.requests,
                "request_retries": batch.spent.retries,
                "tokens": batch.spent.tokens,
                "cost_micro_usd": round(batch.spent.tokens * self._remote.usd_per_million_tokens),
            }
            # The texts that have a vector share the cost, by their size.
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
        """End at once, also what waits for its turn or for the server."""
        self._endpoint.close()
        self._batcher.close()

    def _outcomes(self, texts: Sequence[str], batch: _Batch) -> list[np.ndarray | ItemError]:
        """A vector or an error for each text."""
        if batch.fault is not None:
            return [batch.fault] * len(texts)
        try:
            return list(self._endpoint.ask(texts, batch.spent, is_patient=batch.ends_at is None))
        except ItemError as error:
            return self._divided(texts, batch, error)

    def _divided(
        self, texts: Sequence[str], batch: _Batch, failure: ItemError
    ) -> list[np.ndarray | ItemError]:
        """What each text gets after a request failed: the endpoint's fault, or that of the text found."""
        is_first, is_alone, now = batch.ends_at is None, len(texts) == 1, time.monotonic()
        if batch.ends_at is None:
            # Long enough to find two texts with which every piece hangs.
            batch.ends_at = now + 2 * (len(texts).bit_length() + 1) * self._remote.timeout_seconds
        if not isinstance(failure, _MAYBE_ONE_TEXT):
            batch.fault = failure
            self._endpoint.pronounce(failure)
        elif now >= batch.ends_at:
            batch.fault = failure
        elif is_first or is_alone:
            batch.fault = self._fault_of_all(batch)
        if batch.fault is not None:
            return [batch.fault] * len(texts)
        if is_first:
            return self._outcomes(texts, batch)  # the endpoint may just have come back
        if is_alone:
            return [_blamed(failure)]
        middle = (len(texts) + 1) // 2
        outcomes = self._outcomes(texts[:middle], batch) + self._outcomes(texts[middle:], batch)
        if len(texts) == batch.size and not any(isinstance(outcome, ItemError) for outcome in outcomes):
            # Each text is accepted: they were too many, and so would the next batch be.
            self._most_texts = min(self._most_texts, middle)
        return outcomes

    def _fault_of_all(self, batch: _Batch) -> ItemError | None:
        """The fault that a harmless text meets as well, if there is one: then no text is to blame."""
        with self._probing:  # threads that meet a wrong key together ask once
            try:
                self._endpoint.ask([HARMLESS], batch.spent, is_patient=False)
                return None
            except TextRefused as error:
                fault: ItemError = EndpointRefused(
                    f"{str(error)[:-1]}, also for a harmless text; check embeddings.dense: model, dim "
                    "and remote."
                )
            except WrongLength as error:
                fault = WrongDimension(
                    f"{str(error)[:-1]}, the value of embeddings.dense.dim; set dim to what the model gives, "
                    "or remote.send_dimensions if it can give others."
                )
            except VectorUnusable as error:
                fault = EndpointAnswerUnusable(str(error))
            except ItemError as error:
                fault = error
            self._endpoint.pronounce(fault)
            return fault


def _blamed(failure: ItemError) -> ItemError:
    """The failure as that of the one text which was asked for."""
    if isinstance(failure, VectorUnusable):
        return failure
    if isinstance(failure, (TextRefused, EndpointDenied)):
        return TextRefused(f"{failure} It refuses this text alone: a harmless one is answered.")
    return TextUnanswered(f"{failure} It fails at this text alone: a harmless one is answered.")


def _shares(total: int, weights: Sequence[int]) -> Iterator[int]:
    """Whole numbers in proportion to the weights, which add up to the total."""
    before, sofar, everything = 0, 0, sum(weights) or 1
    for weight in weights:
        sofar += weight
        after = total * sofar // everything
        yield after - before
        before = after


class RemoteKind:
    """Planning sends no request, so the settings must say what the endpoint gives."""

    def describe(self, options: DenseOptions) -> DenseFacts:
        dim, remote = _require_settings(options), options.remote
        # Where the model answers, without what a query may hold.
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

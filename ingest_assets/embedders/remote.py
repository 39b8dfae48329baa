"""Dense vectors from any endpoint that speaks OpenAI's protocol: OpenAI, TEI, vLLM and others.

`Connections` sends one POST, `Endpoint` retries it and says what an answer means, `RemoteEmbedder` divides a
batch that fails until the text at fault stands alone.
"""

import asyncio
import base64
import concurrent.futures
import json
import os
import random
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
from pydantic import SecretStr

from ingest_assets.core.endpoints import DENIED, is_busy, key_fault, retry_after_s, shown_address
from ingest_assets.core.errors import ConfigError, ItemError
from ingest_assets.core.identity import sha256_text
from ingest_assets.embedders.batching import Batcher, Counted
from ingest_assets.embedders.errors import (
    CertificatesUnreadable,
    ConnectionBroken,
    EmbedderClosed,
    EndpointAnswerUnusable,
    EndpointBusy,
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

Outcome = np.ndarray | ItemError  # of one text

HARMLESS = "text"  # sent to find out whether a fault is the endpoint's or a text's
_REFUSALS = (EndpointDenied, EndpointRefused)  # a gateway may answer so to one text that it blocks
_PASSING = (EndpointBusy, EndpointTimeout, EndpointUnreachable, EndpointAnswerUnusable)
_MAYBE_ONE_TEXT = (*_REFUSALS, EndpointFailed, EndpointTimeout, ConnectionBroken, EndpointAnswerUnusable)


@dataclass(frozen=True)
class Pace:
    """How long to wait between attempts."""

    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 30.0
    longest_asked_seconds: float = 60.0  # of what a `Retry-After` may ask for
    longest_silence_seconds: float = 300.0  # without an answer: then requests fail without being sent
    verdict_seconds: float = 30.0  # how long a fault of the endpoint is repeated without a request
    chance: Callable[[], float] = random.random

    def pause(self, attempt: int, asked: float | None) -> float:
        """Doubles with each attempt, with jitter; or what the server asks for, if that is longer."""
        doubled = self.first_pause_seconds * 2.0 ** min(attempt - 1, 30)
        usual = min(doubled, self.longest_pause_seconds) * (1 + 0.25 * self.chance())
        return max(usual, min(asked or 0.0, self.longest_asked_seconds))


@dataclass(eq=False)
class Taken:
    """A share of a minute's quota; the amount may be corrected later."""

    moment: float
    amount: int


@dataclass(eq=False)
class PerMinute:
    """At most `limit` in any minute; 0 = any number. What is larger than the limit goes alone."""

    limit: int
    _taken: deque[Taken] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, amount: int, now: float) -> Taken | float:
        """A share, or the seconds after which to ask again."""
        share = Taken(now, amount)
        if not self.limit:
            return share
        with self._lock:
            while self._taken and now - self._taken[0].moment >= 60:
                self._taken.popleft()
            if self._taken and sum(taken.amount for taken in self._taken) + amount > self.limit:
                return max(self._taken[0].moment + 60 - now, 1e-3)
            self._taken.append(share)
            return share


class Connections:
    """HTTP connections on an event loop of their own thread.

    There a deadline covers a whole request, however slowly its bytes arrive, and `close` ends all requests;
    a blocking client can do neither. Redirects are not followed: the key would go along.
    """

    def __init__(self, key: SecretStr | None, *, use_environment_proxies: bool) -> None:
        try:
            # certifi's authorities, or those of SSL_CERT_FILE or SSL_CERT_DIR, with and without proxies.
            certificates = httpx.create_ssl_context(trust_env=True)
        except OSError as error:
            raise CertificatesUnreadable(
                f"On this worker the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read "
                f"({type(error).__name__}); set it to an existing PEM file, or unset it."
            ) from None
        self._client = httpx.AsyncClient(
            verify=certificates,
            headers={"Authorization": f"Bearer {key.get_secret_value()}"} if key else {},
            trust_env=use_environment_proxies,
            timeout=None,  # `post` has its own
            limits=httpx.Limits(),  # none: the batcher's lanes limit the requests
        )
        self._lock = threading.Lock()
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="endpoint", daemon=True)
        self._thread.start()

    def post(self, url: str, content: bytes, seconds: float, max_bytes: int) -> tuple[httpx.Response, bytes]:
        """The answer to a POST of JSON; its body is cut shortly after `max_bytes`."""

        async def answer() -> tuple[httpx.Response, bytes]:
            headers, body = {"Content-Type": "application/json"}, bytearray()
            async with (
                asyncio.timeout(seconds),
                self._client.stream("POST", url, content=content, headers=headers) as response,
            ):
                async for block in response.aiter_bytes():
                    body += block
                    if len(body) > max_bytes:
                        break
            return response, bytes(body)

        with self._lock:
            if self._is_closed:
                raise EmbedderClosed("The embedder is closed.")
            request = asyncio.run_coroutine_threadsafe(answer(), self._loop)
        try:
            return request.result()
        except concurrent.futures.CancelledError:
            raise EmbedderClosed("The embedder was closed during a request.") from None

    def close(self) -> None:
        """End all requests; may be called twice."""

        async def end() -> None:
            requests = asyncio.all_tasks() - {asyncio.current_task()}
            for request in requests:
                request.cancel()
            await asyncio.gather(*requests, return_exceptions=True)
            await self._client.aclose()

        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _vectors(items: list[Any], count: int, dim: int) -> list[Outcome]:
    """A vector or an error per text; `VectorUnusable` where it is unknown which vector is whose."""
    indices = [item.get("index") if isinstance(item, dict) else None for item in items]
    if indices == [None] * count:
        indices = list(range(count))  # some servers leave the index out
    by_index = {index: item for index, item in zip(indices, items, strict=True) if type(index) is int}
    if len(items) != count or by_index.keys() != set(range(count)):
        raise VectorUnusable(f"{len(items)} vectors for {count} texts, or wrong indices")
    return [_vector(by_index[index], dim) for index in range(count)]


def _vector(item: Any, dim: int) -> Outcome:
    numbers = item.get("embedding") if isinstance(item, dict) else None
    try:
        if isinstance(numbers, str):
            vector = np.frombuffer(base64.b64decode(numbers, validate=True), dtype="<f4")
        elif isinstance(numbers, list) and set(map(type, numbers)) <= {int, float}:  # not bool
            with np.errstate(over="ignore"):
                vector = np.asarray(numbers, dtype=np.float64).astype("<f4")
        else:
            return VectorUnusable("neither a list of numbers nor base64")
    except OverflowError:
        return VectorUnusable("numbers that are not finite")
    except ValueError as error:
        return VectorUnusable(f"invalid base64 ({error})")
    if len(vector) != dim:
        return WrongLength(f"{len(vector)} numbers instead of {dim}")
    return vector if np.isfinite(vector).all() else VectorUnusable("numbers that are not finite")


@dataclass(eq=False)
class _Batch:
    """What is known of some texts while they are asked for, together or in pieces."""

    size: int
    requests: int = 0
    retries: int = 0
    tokens: int = 0  # as the endpoint counts them
    fault: ItemError | None = None  # the endpoint's own: what was not asked for yet would meet it too
    ends_at: float | None = None  # of the search for the text at fault


class Endpoint:
    """One address, asked from several threads at once.

    A pause that the endpoint asks for is waited out by all threads. While it is down, each request has one
    attempt. A verdict (a wrong key, say) is repeated for a while without a request.
    """

    def __init__(self, options: DenseOptions, key: SecretStr | None, pace: Pace) -> None:
        self._options, self._remote, self._key, self._pace = options, options.remote, key, pace
        self._dim = options.dim or 0
        self.address = shown_address(options.remote.url)
        self._closed = threading.Event()
        self._request_quota = PerMinute(options.remote.requests_per_minute)
        self._token_quota = PerMinute(options.remote.tokens_per_minute)
        self._connections = Connections(key, use_environment_proxies=options.remote.use_environment_proxies)
        self._not_before = time.monotonic()
        self._verdict: tuple[float, ItemError] | None = None
        self._is_down = False
        self._silent_since: float | None = None
        self.has_answered = False

    def close(self) -> None:
        """End all requests and all waiting."""
        self._closed.set()
        self._connections.close()

    def ask(self, texts: Sequence[str], batch: _Batch, *, is_patient: bool = True) -> list[Outcome]:
        """A vector or an error per text, after retries; if not `is_patient`, a fault that may be one text's
        is not retried."""
        attempt = 1
        while True:
            if self._verdict and time.monotonic() - self._verdict[0] < self._pace.verdict_seconds:
                raise _copy(self._verdict[1])
            try:
                outcomes = self._attempt(texts, batch)
                break
            except _PASSING as error:
                retries, is_texts = self._remote.retries, isinstance(error, _MAYBE_ONE_TEXT)
                if self._is_down or (is_texts and not is_patient):
                    retries = 0
                elif isinstance(error, EndpointAnswerUnusable):
                    retries = min(retries, 2)  # a wrong address answers so for ever
                asked = error.detail.get("retry_after_s")
                seconds = self._pace.pause(attempt, asked)
                if asked is not None and not is_texts:
                    self._not_before = max(self._not_before, time.monotonic() + seconds)
                if attempt > retries:
                    times = f" It was asked {attempt} times." if attempt > 1 else ""
                    final = type(error)(f"{error}{times}", detail=error.detail)
                    if not is_texts or list(texts) == [HARMLESS]:
                        self._note_silence(final)
                    raise final from None
                self._wait(seconds)
                attempt += 1
                batch.retries += 1
        self._is_down, self._silent_since = False, None
        self.has_answered |= not all(isinstance(outcome, ItemError) for outcome in outcomes)
        return outcomes

    def pronounce(self, error: ItemError) -> None:
        """Repeat this error for a while to all who ask."""
        self._verdict = (time.monotonic(), error)

    def _note_silence(self, error: ItemError) -> None:
        """A request was given up for a fault that no text has caused."""
        now = time.monotonic()
        self._silent_since = now if self._silent_since is None else self._silent_since
        is_over = now - self._silent_since >= self._pace.longest_silence_seconds
        self._is_down |= is_over or type(error) is not EndpointBusy  # a server that asks for a pause is up
        if is_over:
            self.pronounce(error)

    def _wait(self, seconds: float) -> None:
        if self._closed.wait(max(0.0, seconds)):
            raise EmbedderClosed("The embedder was closed while a request waited.")

    def _share(self, quota: PerMinute, amount: int) -> Taken:
        while not isinstance(taken := quota.take(amount, time.monotonic()), Taken):
            self._wait(taken)
        return taken

    def _attempt(self, texts: Sequence[str], batch: _Batch) -> list[Outcome]:
        self._wait(self._not_before - time.monotonic())
        share = self._share(self._token_quota, sum(estimated_tokens(texts)))
        self._share(self._request_quota, 1)
        batch.requests += 1
        response, body = self._post(texts)
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            content = None
        content = content if isinstance(content, dict) else {}
        if response.status_code != 200:
            raise self._refusal(response, content)
        usage = content.get("usage")
        counts = (
            [usage.get(name) for name in ("prompt_tokens", "total_tokens")] if isinstance(usage, dict) else []
        )
        tokens = next((count for count in counts if type(count) is int and 0 <= count < 2**40), 0)
        share.amount = tokens or share.amount
        batch.tokens += tokens
        items = content.get("data")
        if not isinstance(items, list):
            raise EndpointAnswerUnusable(
                f"The endpoint {self.address} answered with status 200 and no vectors{self._words(content)}; "
                "check embeddings.dense.model and embeddings.dense.remote.url, or run again later."
            )
        return _vectors(items, len(texts), self._dim)

    def _post(self, texts: Sequence[str]) -> tuple[httpx.Response, bytes]:
        question: dict[str, Any] = {
            "model": self._options.model,
            "input": list(texts),
            "encoding_format": "float",
        }
        if self._remote.send_dimensions:
            question["dimensions"] = self._dim
        seconds = self._remote.timeout_seconds
        max_bytes = 2**20 + len(texts) * self._dim * 64  # 64 for a number in JSON, generously
        try:
            response, body = self._connections.post(
                self._remote.url, json.dumps(question).encode(), seconds, max_bytes
            )
        except TimeoutError:
            raise EndpointTimeout(
                f"The endpoint {self.address} did not answer within {seconds:g} s; raise timeout_seconds "
                "or lower batch_size in embeddings.dense.remote, or run again later."
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from None
        if len(body) > max_bytes and response.status_code == 200:
            raise EndpointAnswerUnusable(
                f"The endpoint {self.address} answered with more than {max_bytes} bytes, which is no list of "
                "such vectors; check embeddings.dense.remote.url."
            )
        return response, body

    def _unreachable(self, error: Exception) -> ItemError:
        words = " ".join(f"{type(error).__name__}: {error}".split())[:160].rstrip(": ")
        if isinstance(error, httpx.DecodingError):
            return EndpointAnswerUnusable(f"The endpoint {self.address} sent an invalid compressed body.")
        if isinstance(error, (httpx.ReadError, httpx.WriteError, httpx.CloseError, httpx.ProtocolError)):
            return ConnectionBroken(
                f"The endpoint {self.address} closed the connection before its answer was complete "
                f"({words}); see the server's log, or run again later."
            )
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            return EndpointUnreachable(
                f"The endpoint {self.address} has no certificate that this worker trusts ({words}); set "
                "SSL_CERT_FILE to its authority's PEM file where workers run, or check "
                "embeddings.dense.remote.url."
            )
        return EndpointUnreachable(
            f"The endpoint {self.address} cannot be reached ({words}); start it, or check "
            "embeddings.dense.remote.url."
        )

    def _refusal(self, response: httpx.Response, content: Mapping[str, Any]) -> ItemError:
        """What a status other than 200 means: for this request, for these texts, or for all."""
        status, error = response.status_code, content.get("error")
        said = f"The endpoint {self.address} answered with status {status}"
        if status in DENIED:
            return EndpointDenied(
                f"{said}: the key is missing, wrong or not permitted; "
                "see embeddings.dense.remote.api_key_env."
            )
        no_credit = ("insufficient_quota", "billing_hard_limit_reached")
        if isinstance(error, dict) and error.get("code") in no_credit:
            return EndpointDenied(f"{said}: no credit left for the key; see the account it belongs to.")
        said += self._words(content)
        if status in (400, 413, 422):
            return TextRefused(f"{said}.")
        if status not in (501, 505) and (status == 409 or is_busy(status)):
            asked = response.headers.get("retry-after", "")
            seconds = retry_after_s(asked, time.time())
            detail = None if seconds is None else {"retry_after_s": seconds}
            if status == 429:
                what_to_do = (
                    "lower embeddings.dense.remote.max_in_flight, or set requests_per_minute or "
                    "tokens_per_minute beside it, or run again later"
                )
                return EndpointBusy(f"{said}; {what_to_do}.", detail=detail)
            is_overload = status < 500 or (status in (503, 529) and asked)
            return (EndpointBusy if is_overload else EndpointFailed)(
                f"{said}; see the server's log, or lower embeddings.dense.remote.max_in_flight, "
                "or run again later.",
                detail=detail,
            )
        if response.next_request is not None:
            place = shown_address(str(response.next_request.url))[:200]
            return EndpointRefused(
                f"{said}: it redirects to {place}, and redirects are not followed; set "
                "embeddings.dense.remote.url to that if you trust it with the texts and the key."
            )
        return EndpointRefused(f"{said}; check embeddings.dense.remote.url and embeddings.dense.model.")

    def _words(self, content: Mapping[str, Any]) -> str:
        """The server's message after a colon, on one line and without the key; empty when it has none."""
        error = content.get("error")
        inner = error.get("message") if isinstance(error, dict) else error
        given = (inner, content.get("message"), content.get("detail"))
        words = " ".join(next((text for text in given if isinstance(text, str)), "").split())
        if self._key is not None:
            words = words.replace(self._key.get_secret_value(), "…")
        return f": {words[:200].rstrip('.')}" if words else ""


class RemoteEmbedder:
    """Texts of several documents share requests; each text's vector or error is its own.

    When a batch fails and the endpoint answers a harmless text, the batch is halved until the guilty text
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
                "requests": batch.requests,
                "request_retries": batch.retries,
                "tokens": batch.tokens,
                "cost_micro_usd": round(batch.tokens * self._remote.usd_per_million_tokens),
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

    def _outcomes(self, texts: Sequence[str], batch: _Batch, *, is_second: bool = False) -> list[Outcome]:
        if batch.fault is not None:
            return [_copy(batch.fault) for _ in texts]
        try:
            outcomes = self._endpoint.ask(texts, batch, is_patient=batch.ends_at is None)
        except VectorUnusable as error:
            return [self._unusable(error)] if len(texts) == 1 else self._halves(texts, batch)
        except ItemError as error:
            return self._divided(texts, batch, error)
        if not self._endpoint.has_answered and all(isinstance(one, WrongLength) for one in outcomes):
            batch.fault = self._fault_of_all(batch)
            if batch.fault is not None:
                return [_copy(batch.fault) for _ in texts]
        bad = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, VectorUnusable)]
        again: list[Outcome] = [self._unusable(outcomes[place]) for place in bad]
        if bad and not is_second:
            again = self._outcomes([texts[place] for place in bad], batch, is_second=True)
        for place, outcome in zip(bad, again, strict=True):
            outcomes[place] = outcome
        return outcomes

    def _divided(self, texts: Sequence[str], batch: _Batch, error: ItemError) -> list[Outcome]:
        """What each text gets after a request failed: the endpoint's fault, or that of the text found."""
        is_alone, is_refused = len(texts) == 1, isinstance(error, TextRefused)
        is_late = batch.ends_at is not None and time.monotonic() >= batch.ends_at
        if is_late or not isinstance(error, (TextRefused, *_MAYBE_ONE_TEXT)):
            batch.fault = error
        elif (not self._endpoint.has_answered) if is_refused else (is_alone or batch.ends_at is None):
            batch.fault = self._fault_of_all(batch)
        if batch.fault is not None:
            return [_copy(batch.fault) for _ in texts]
        if not is_refused and batch.ends_at is None:
            # Long enough to find two texts with which every piece hangs.
            most_seconds = 2 * (len(texts).bit_length() + 1) * self._remote.timeout_seconds
            batch.ends_at = time.monotonic() + most_seconds
            return self._outcomes(texts, batch)  # the endpoint may just have come back
        if is_alone:
            return [_blamed(error)]
        outcomes = self._halves(texts, batch)
        if len(texts) == batch.size and not any(isinstance(outcome, ItemError) for outcome in outcomes):
            # Each text is accepted: they were too many, and so would the next batch be.
            self._most_texts = min(self._most_texts, (len(texts) + 1) // 2)
        return outcomes

    def _halves(self, texts: Sequence[str], batch: _Batch) -> list[Outcome]:
        middle = (len(texts) + 1) // 2
        return self._outcomes(texts[:middle], batch) + self._outcomes(texts[middle:], batch)

    def _fault_of_all(self, batch: _Batch) -> ItemError | None:
        """The fault that a harmless text meets as well, if there is one: then no text is to blame."""
        with self._probing:  # threads that meet a wrong key together ask once
            try:
                (outcome,) = self._endpoint.ask([HARMLESS], batch, is_patient=False)
            except ItemError as error:
                outcome = error
            if not isinstance(outcome, ItemError):
                return None
            fault = outcome
            if isinstance(outcome, TextRefused):
                fault = EndpointRefused(
                    f"{str(outcome)[:-1]}, also for a harmless text; check embeddings.dense: model, dim "
                    "and remote."
                )
            elif isinstance(outcome, WrongLength):
                fault = WrongDimension(
                    f"The endpoint {self._endpoint.address} gives vectors of {outcome}, the value of "
                    "embeddings.dense.dim; set dim to what the model gives, "
                    "or remote.send_dimensions if it can give others."
                )
            elif isinstance(outcome, VectorUnusable):
                fault = EndpointAnswerUnusable(str(self._unusable(outcome)))
            if fault.category == "config":
                self._endpoint.pronounce(fault)
            return fault

    def _unusable(self, error: object) -> VectorUnusable:
        return VectorUnusable(f"The endpoint {self._endpoint.address} gave no usable vector: {error}.")


def _copy(error: ItemError) -> ItemError:
    return type(error)(str(error), detail=error.detail)


def _blamed(error: ItemError) -> ItemError:
    """The fault as that of the one text which was asked for."""
    if isinstance(error, TextRefused):
        return error
    if isinstance(error, _REFUSALS):
        return TextRefused(
            f"{error} It refuses this text alone: a harmless one is answered, so the settings are right, "
            "and a gateway's rule may be the reason."
        )
    return TextUnanswered(f"{error} It fails at this text alone: a harmless one is answered.")


def _shares(total: int, weights: Sequence[int]) -> Iterator[int]:
    """Whole numbers in proportion to the weights, which add up to the total."""
    before, sofar, everything = 0, 0, sum(weights) or 1
    for weight in weights:
        sofar += weight
        after = total * sofar // everything
        yield after - before
        before = after


def estimated_tokens(texts: Sequence[str]) -> list[int]:
    """By size, at three bytes a token, which is on the safe side for most languages."""
    return [len(text.encode("utf-8", "surrogatepass")) // 3 + 1 for text in texts]


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

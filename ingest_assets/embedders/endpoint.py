"""One address that speaks OpenAI's embeddings protocol: quotas, connections, retries, and what answers mean.

`Connections` sends one POST, `Endpoint` retries it and turns the answer into vectors or into one error.
"""

import asyncio
import concurrent.futures
import copy
import json
import random
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
from pydantic import SecretStr

from ingest_assets.core.endpoints import DENIED, is_busy, retry_after_s, shown_address
from ingest_assets.core.errors import ItemError
from ingest_assets.embedders.errors import (
    CertificatesUnreadable,
    EmbedderClosed,
    EndpointAnswerUnusable,
    EndpointBusy,
    EndpointDenied,
    EndpointFailed,
    EndpointTimeout,
    EndpointUnreachable,
    TextRefused,
    VectorUnusable,
    WrongLength,
)
from ingest_assets.settings.embeddings import DenseOptions

_NO_CREDIT = ("insufficient_quota", "billing_hard_limit_reached")  # OpenAI's codes beside status 429
_PASSING = (EndpointBusy, EndpointTimeout, EndpointUnreachable, EndpointAnswerUnusable)


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


@dataclass(eq=False)
class Spent:
    """What some texts have cost so far."""

    requests: int = 0
    retries: int = 0
    tokens: int = 0  # as the endpoint counts them


class Endpoint:
    """One address, asked from several threads at once.

    A pause that the endpoint asks for is waited out by all threads. While it is down, each request has one
    attempt. A verdict (a wrong key, say) is repeated for a while without a request.
    """

    def __init__(self, options: DenseOptions, key: SecretStr | None, pace: Pace) -> None:
        self._options, self._remote, self._key, self._pace = options, options.remote, key, pace
        self._dim = options.dim or 0
        self._address = shown_address(options.remote.url)
        self._closed = threading.Event()
        self._request_quota = PerMinute(options.remote.requests_per_minute)
        self._token_quota = PerMinute(options.remote.tokens_per_minute)
        self._connections = Connections(key, use_environment_proxies=options.remote.use_environment_proxies)
        self._not_before = time.monotonic()
        self._verdict: tuple[float, ItemError] | None = None
        self._is_down = False
        self._silent_since: float | None = None

    def close(self) -> None:
        """End all requests and all waiting."""
        self._closed.set()
        self._connections.close()

    def ask(self, texts: Sequence[str], spent: Spent, *, is_patient: bool = True) -> np.ndarray:
        """A row for each text, after retries; if not `is_patient`, none but after pauses asked for."""
        attempt = 1
        while True:
            verdict = self._standing_verdict()
            if verdict is not None:
                raise copy.copy(verdict)
            try:
                vectors = self._attempt(texts, spent)
            except _PASSING as error:
                asks_for_pause = type(error) is EndpointBusy
                asked = error.detail.get("retry_after_s")
                seconds = self._pace.pause(attempt, asked)
                if asks_for_pause and asked is not None:
                    self._not_before = max(self._not_before, time.monotonic() + seconds)
                has_retries = (is_patient or asks_for_pause) and not self._is_down
                if attempt > (self._remote.retries if has_retries else 0):
                    times = f" It was asked {attempt} times." if attempt > 1 else ""
                    raise type(error)(f"{error}{times}", detail=error.detail) from None
                self._wait(seconds)
                attempt += 1
                spent.retries += 1
            else:
                self._is_down, self._silent_since = False, None
                return vectors

    def pronounce(self, fault: ItemError) -> None:
        """Take note of a fault that no text has caused; a matter of settings is repeated to all who ask."""
        if self._standing_verdict() is not None:
            return
        now = time.monotonic()
        self._silent_since = now if self._silent_since is None else self._silent_since
        is_over = now - self._silent_since >= self._pace.longest_silence_seconds
        self._is_down |= is_over or type(fault) is not EndpointBusy  # a server that asks for a pause is up
        if is_over or fault.category == "config":
            self._verdict = (now, fault)

    def _standing_verdict(self) -> ItemError | None:
        moment, fault = self._verdict or (0.0, None)
        return fault if time.monotonic() - moment < self._pace.verdict_seconds else None

    def _wait(self, seconds: float) -> None:
        if self._closed.wait(max(0.0, seconds)):
            raise EmbedderClosed("The embedder was closed while a request waited.")

    def _share(self, quota: PerMinute, amount: int) -> Taken:
        while not isinstance(taken := quota.take(amount, time.monotonic()), Taken):
            self._wait(taken)
        return taken

    def _attempt(self, texts: Sequence[str], spent: Spent) -> np.ndarray:
        self._wait(self._not_before - time.monotonic())
        share = self._share(self._token_quota, sum(estimated_tokens(texts)))
        self._share(self._request_quota, 1)
        spent.requests += 1
        response, body = self._post(texts)
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            content = None
        content = content if isinstance(content, dict) else {}
        if response.status_code != 200:
            raise self._refusal(response, content)
        items, usage = content.get("data"), content.get("usage")
        if not isinstance(items, list):
            raise EndpointAnswerUnusable(
                f"The endpoint {self._address} answered with status 200 and no vectors{self._words(content)}"
                "; check embeddings.dense.model and embeddings.dense.remote.url, or run again later."
            )
        used = (usage.get("prompt_tokens") or usage.get("total_tokens")) if isinstance(usage, dict) else None
        if isinstance(used, int) and used > 0:
            share.amount = used
            spent.tokens += used
        return self._vectors(items, len(texts))

    def _post(self, texts: Sequence[str]) -> tuple[httpx.Response, bytes]:
        """The answer to one request; a body much longer than such vectors is cut, and no JSON then."""
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
            return self._connections.post(self._remote.url, json.dumps(question).encode(), seconds, max_bytes)
        except TimeoutError:
            raise EndpointTimeout(
                f"The endpoint {self._address} did not answer within {seconds:g} s; raise timeout_seconds "
                "or lower batch_size in embeddings.dense.remote, or run again later."
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            words = " ".join(f"{type(error).__name__}: {error}".split())[:160].rstrip(": ")
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
                cause = cause.__cause__ or cause.__context__
            raise EndpointUnreachable(
                f"The endpoint {self._address} has no certificate that this worker trusts ({words}); set "
                "SSL_CERT_FILE to its authority's PEM file where workers run, or check "
                "embeddings.dense.remote.url."
                if cause is not None
                else f"The endpoint {self._address} cannot be reached, or broke the connection off ({words})"
                "; start it, see its log, or check embeddings.dense.remote.url."
            ) from None

    def _vectors(self, items: list[Any], count: int) -> np.ndarray:
        """A row for each text. Unless all of them are there, it is unknown which vector is whose."""
        before = f"The endpoint {self._address} gave no usable vector"
        try:
            # Some servers leave the index out.
            given = [item.get("index") for item in items]
            places = [place if index is None else index for place, index in enumerate(given)]
            if sorted(places) != list(range(count)):
                raise VectorUnusable(f"{before}: {len(items)} vectors for {count} texts, or wrong indices.")
            rows = {place: item["embedding"] for place, item in zip(places, items, strict=True)}
            with np.errstate(over="ignore"):
                vectors = np.array([rows[place] for place in range(count)], dtype="<f4")
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise VectorUnusable(f"{before}: no list of numbers ({type(error).__name__}).") from None
        if vectors.ndim != 2:
            raise VectorUnusable(f"{before}: no list of numbers.")
        if vectors.shape[1] != self._dim:
            raise WrongLength(f"{before}: {vectors.shape[1]} numbers instead of {self._dim}.")
        if not np.isfinite(vectors).all():
            raise VectorUnusable(f"{before}: numbers that are not finite.")
        return vectors

    def _refusal(self, response: httpx.Response, content: Mapping[str, Any]) -> ItemError:
        """What a status other than 200 means."""
        status, error = response.status_code, content.get("error")
        said = f"The endpoint {self._address} answered with status {status}"
        if status in DENIED:
            return EndpointDenied(
                f"{said}: the key is missing, wrong or not permitted; "
                "see embeddings.dense.remote.api_key_env."
            )
        if isinstance(error, dict) and error.get("code") in _NO_CREDIT:
            return EndpointDenied(f"{said}: no credit left for the key; see the account it belongs to.")
        said += self._words(content)
        if status == 409 or is_busy(status):
            asked = response.headers.get("retry-after", "")
            seconds = retry_after_s(asked, time.time())
            what_to_do = (
                "lower embeddings.dense.remote.max_in_flight, or set requests_per_minute or "
                "tokens_per_minute beside it"
                if status == 429
                else "see the server's log, or lower embeddings.dense.remote.max_in_flight"
            )
            is_overload = status < 500 or (status in (503, 529) and asked)
            return (EndpointBusy if is_overload else EndpointFailed)(
                f"{said}; {what_to_do}, or run again later.",
                detail=None if seconds is None else {"retry_after_s": seconds},
            )
        if "location" in response.headers:
            place = shown_address(response.headers["location"])[:200]
            said += f": it redirects to {place}, and redirects are not followed"
        return TextRefused(f"{said}.")

    def _words(self, content: Mapping[str, Any]) -> str:
        """The server's message after a colon, on one line and without the key; empty when it has none."""
        error = content.get("error")
        inner = error.get("message") if isinstance(error, dict) else error
        given = (inner, content.get("message"), content.get("detail"))
        words = " ".join(next((text for text in given if isinstance(text, str)), "").split())
        if self._key is not None:
            words = words.replace(self._key.get_secret_value(), "…")
        return f": {words[:200].rstrip('.')}" if words else ""


def estimated_tokens(texts: Sequence[str]) -> list[int]:
    """By size, at three bytes a token, which is on the safe side for most languages."""
    return [len(text.encode("utf-8", "surrogatepass")) // 3 + 1 for text in texts]

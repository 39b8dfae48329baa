"""Client of one endpoint with OpenAI's embeddings protocol: quotas, connections, retries, responses.

`Connections` sends one POST. `Endpoint` retries it and turns the response into vectors or one error.
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

from ingest_assets.core.endpoints import DENIED, is_busy, redacted_url, retry_after_s
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

_NO_CREDIT = ("insufficient_quota", "billing_hard_limit_reached")  # OpenAI's codes with status 429
_TEMPORARY = (EndpointBusy, EndpointTimeout, EndpointUnreachable, EndpointAnswerUnusable)


@dataclass(frozen=True)
class Pace:
    """Pauses between attempts, and how long a fault is remembered."""

    first_pause_seconds: float = 0.5
    max_pause_seconds: float = 30.0
    max_retry_after_seconds: float = 60.0  # a longer `Retry-After` is shortened to this
    max_silence_seconds: float = 300.0  # after so long without success, requests fail without being sent
    fault_seconds: float = 30.0  # how long a known fault is raised again without a request
    jitter: Callable[[], float] = random.random

    def pause(self, attempt: int, retry_after: float | None) -> float:
        """Return the pause: it doubles with each attempt, with jitter; a longer `Retry-After` wins."""
        doubled = self.first_pause_seconds * 2.0 ** min(attempt - 1, 30)
        backoff = min(doubled, self.max_pause_seconds) * (1 + 0.25 * self.jitter())
        return max(backoff, min(retry_after or 0.0, self.max_retry_after_seconds))


@dataclass(eq=False)
class QuotaShare:
    """A share of a minute's quota; the amount can be corrected after the response."""

    moment: float
    amount: int


@dataclass(eq=False)
class PerMinute:
    """Allows `limit` per minute; 0 = unlimited. A larger amount must be alone in its minute."""

    limit: int
    _taken: deque[QuotaShare] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, amount: int, now: float) -> QuotaShare | float:
        """Return a share, or the seconds to wait before trying again."""
        share = QuotaShare(now, amount)
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

    Unlike a blocking client, this enforces a deadline on a whole request, however slowly its bytes arrive,
    and `close` ends all requests. Redirects are not followed, since the key would be sent along.
    """

    def __init__(self, key: SecretStr | None, *, use_environment_proxies: bool) -> None:
        try:
            # From certifi, SSL_CERT_FILE or SSL_CERT_DIR, whether or not proxies are used.
            certificates = httpx.create_ssl_context(trust_env=True)
        except OSError as error:
            raise CertificatesUnreadable(
                f"The certificates in SSL_CERT_FILE or SSL_CERT_DIR cannot be read on this worker "
                f"({type(error).__name__}). Set the variable to an existing PEM file, or unset it."
            ) from None
        self._client = httpx.AsyncClient(
            verify=certificates,
            headers={"Authorization": f"Bearer {key.get_secret_value()}"} if key else {},
            trust_env=use_environment_proxies,
            timeout=None,  # `post` has a deadline
            limits=httpx.Limits(),  # unlimited: the batcher's lanes limit the requests
        )
        self._lock = threading.Lock()
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="endpoint", daemon=True)
        self._thread.start()

    def post(self, url: str, content: bytes, seconds: float, max_bytes: int) -> tuple[httpx.Response, bytes]:
        """Send JSON and return the response; its body is cut shortly after `max_bytes`."""

        async def send() -> tuple[httpx.Response, bytes]:
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
            request = asyncio.run_coroutine_threadsafe(send(), self._loop)
        try:
            return request.result()
        except concurrent.futures.CancelledError:
            raise EmbedderClosed("The embedder was closed during a request.") from None

    def close(self) -> None:
        """Cancel all requests. Safe to call twice."""

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
    """The cost of some texts so far."""

    requests: int = 0
    retries: int = 0
    tokens: int = 0  # as counted by the endpoint


class Endpoint:
    """One endpoint, shared by several threads.

    A `Retry-After` pauses all threads. While the endpoint is down, requests are not retried. A fault of the
    settings, such as a wrong key, is raised for a while without a request.
    """

    def __init__(self, options: DenseOptions, key: SecretStr | None, pace: Pace) -> None:
        self._options, self._remote, self._key, self._pace = options, options.remote, key, pace
        self._dim = options.dim or 0
        self._address = redacted_url(options.remote.url)
        self._closed = threading.Event()
        self._request_quota = PerMinute(options.remote.requests_per_minute)
        self._token_quota = PerMinute(options.remote.tokens_per_minute)
        self._connections = Connections(key, use_environment_proxies=options.remote.use_environment_proxies)
        self._not_before = time.monotonic()
        self._fault: tuple[float, ItemError] | None = None
        self._is_down = False
        self._silent_since: float | None = None

    def close(self) -> None:
        """Cancel all requests and all waits."""
        self._closed.set()
        self._connections.close()

    def embed(self, texts: Sequence[str], spent: Spent, *, can_retry: bool = True) -> np.ndarray:
        """Return one row per text. Without `can_retry`, retry only if the endpoint asks for a pause."""
        attempt = 1
        while True:
            fault = self._current_fault()
            if fault is not None:
                raise copy.copy(fault)
            try:
                vectors = self._attempt(texts, spent)
            except _TEMPORARY as error:
                asks_for_pause = type(error) is EndpointBusy
                retry_after = error.detail.get("retry_after_s")
                seconds = self._pace.pause(attempt, retry_after)
                if asks_for_pause and retry_after is not None:
                    self._not_before = max(self._not_before, time.monotonic() + seconds)
                has_retries = (can_retry or asks_for_pause) and not self._is_down
                if attempt > (self._remote.retries if has_retries else 0):
                    attempts = f" Failed after {attempt} attempts." if attempt > 1 else ""
                    raise type(error)(f"{error}{attempts}", detail=error.detail) from None
                self._wait(seconds)
                attempt += 1
                spent.retries += 1
            else:
                self._is_down, self._silent_since = False, None
                return vectors

    def report_fault(self, fault: ItemError) -> None:
        """Record a fault that no text has caused; a fault of the settings is raised for all requests."""
        if self._current_fault() is not None:
            return
        now = time.monotonic()
        self._silent_since = now if self._silent_since is None else self._silent_since
        is_silent = now - self._silent_since >= self._pace.max_silence_seconds
        self._is_down |= is_silent or type(fault) is not EndpointBusy  # a server that asks for a pause is up
        if is_silent or fault.category == "config":
            self._fault = (now, fault)

    def _current_fault(self) -> ItemError | None:
        moment, fault = self._fault or (0.0, None)
        return fault if time.monotonic() - moment < self._pace.fault_seconds else None

    def _wait(self, seconds: float) -> None:
        if self._closed.wait(max(0.0, seconds)):
            raise EmbedderClosed("The embedder was closed while a request waited.")

    def _share(self, quota: PerMinute, amount: int) -> QuotaShare:
        while not isinstance(share := quota.take(amount, time.monotonic()), QuotaShare):
            self._wait(share)
        return share

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
            raise self._status_error(response, content)
        items, usage = content.get("data"), content.get("usage")
        if not isinstance(items, list):
            raise EndpointAnswerUnusable(
                f"The endpoint {self._address} returned status 200 without vectors{self._message(content)}. "
                "Check embeddings.dense.model and embeddings.dense.remote.url, or run again later."
            )
        used = (usage.get("prompt_tokens") or usage.get("total_tokens")) if isinstance(usage, dict) else None
        if isinstance(used, int) and used > 0:
            share.amount = used
            spent.tokens += used
        return self._vectors(items, len(texts))

    def _post(self, texts: Sequence[str]) -> tuple[httpx.Response, bytes]:
        """Return the response to one request; a body too long for vectors is cut, so it is invalid JSON."""
        payload: dict[str, Any] = {
            "model": self._options.model,
            "input": list(texts),
            "encoding_format": "float",
        }
        if self._remote.send_dimensions:
            payload["dimensions"] = self._dim
        seconds = self._remote.timeout_seconds
        max_bytes = 2**20 + len(texts) * self._dim * 64  # a number in JSON takes at most 64
        try:
            return self._connections.post(self._remote.url, json.dumps(payload).encode(), seconds, max_bytes)
        except TimeoutError:
            raise EndpointTimeout(
                f"The endpoint {self._address} did not answer within {seconds:g} s. Raise timeout_seconds or "
                "lower batch_size in embeddings.dense.remote, or run again later."
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:160].rstrip(": ")
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
                cause = cause.__cause__ or cause.__context__
            raise EndpointUnreachable(
                f"The endpoint {self._address} has a certificate that this worker does not trust ({reason}). "
                "Set SSL_CERT_FILE to its authority's PEM file where workers run, or check "
                "embeddings.dense.remote.url."
                if cause is not None
                else f"The endpoint {self._address} cannot be reached, or closed the connection ({reason}). "
                "Start it, see its log, or check embeddings.dense.remote.url."
            ) from None

    def _vectors(self, items: list[Any], count: int) -> np.ndarray:
        """Return one row per text; if any is missing, none can be assigned, so raise."""
        before = f"The endpoint {self._address} returned no valid vector"
        try:
            # Some servers omit the index.
            stated = [item.get("index") for item in items]
            indices = [position if index is None else index for position, index in enumerate(stated)]
            if sorted(indices) != list(range(count)):
                raise VectorUnusable(f"{before}: {len(items)} vectors for {count} texts, or wrong indices.")
            rows = {index: item["embedding"] for index, item in zip(indices, items, strict=True)}
            with np.errstate(over="ignore"):
                vectors = np.array([rows[index] for index in range(count)], dtype="<f4")
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise VectorUnusable(f"{before}: not a list of numbers ({type(error).__name__}).") from None
        if vectors.ndim != 2:
            raise VectorUnusable(f"{before}: not a list of numbers.")
        if vectors.shape[1] != self._dim:
            raise WrongLength(f"{before}: {vectors.shape[1]} numbers instead of {self._dim}.")
        if not np.isfinite(vectors).all():
            raise VectorUnusable(f"{before}: numbers that are not finite.")
        return vectors

    def _status_error(self, response: httpx.Response, content: Mapping[str, Any]) -> ItemError:
        """Return the error for a status other than 200."""
        status, error = response.status_code, content.get("error")
        message = f"The endpoint {self._address} returned status {status}"
        if status in DENIED:
            return EndpointDenied(
                f"{message}: the key is missing, wrong or not permitted. "
                "Check embeddings.dense.remote.api_key_env."
            )
        if isinstance(error, dict) and error.get("code") in _NO_CREDIT:
            return EndpointDenied(f"{message}: no credit left for the key. Check its account.")
        message += self._message(content)
        if status == 409 or is_busy(status):
            retry_after = response.headers.get("retry-after", "")
            seconds = retry_after_s(retry_after, time.time())
            advice = (
                "Lower embeddings.dense.remote.max_in_flight, or set requests_per_minute or "
                "tokens_per_minute there"
                if status == 429
                else "See the server's log, or lower embeddings.dense.remote.max_in_flight"
            )
            is_overload = status < 500 or (status in (503, 529) and retry_after)
            return (EndpointBusy if is_overload else EndpointFailed)(
                f"{message}. {advice}, or run again later.",
                detail=None if seconds is None else {"retry_after_s": seconds},
            )
        if "location" in response.headers:
            target = redacted_url(response.headers["location"])[:200]
            message += f": it redirects to {target}, and redirects are not followed"
        return TextRefused(f"{message}.")

    def _message(self, content: Mapping[str, Any]) -> str:
        """Return the server's message after a colon, on one line and without the key; empty if none."""
        error = content.get("error")
        inner = error.get("message") if isinstance(error, dict) else error
        candidates = (inner, content.get("message"), content.get("detail"))
        message = " ".join(next((text for text in candidates if isinstance(text, str)), "").split())
        if self._key is not None:
            message = message.replace(self._key.get_secret_value(), "…")
        return f": {message[:200].rstrip('.')}" if message else ""


def estimated_tokens(texts: Sequence[str]) -> list[int]:
    """Estimate tokens at three bytes each; most texts have fewer tokens."""
    return [len(text.encode("utf-8", "surrogatepass")) // 3 + 1 for text in texts]

"""One question to an endpoint, with as many attempts as it takes. Faults are told by status, not by words."""

import json
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx
from pydantic import SecretStr

from ingest_assets.embedders.answers import Answer, WrongLength, read_answer
from ingest_assets.embedders.connections import Lines
from ingest_assets.embedders.endpoint_errors import (
    MAYBE_ONE_TEXT,
    REFUSALS,
    EndpointAnswerUnusable,
    EndpointBrokeOff,
    EndpointBusy,
    EndpointThrottled,
    EndpointTimeout,
    EndpointUnreachable,
    WrongDimension,
)
from ingest_assets.embedders.pacing import Pace, PerMinute, Waiting
from ingest_assets.embedders.refusals import parsed_object, quoted_words, refusal
from ingest_assets.model.embedding import DenseOptions
from ingest_assets.model.endpoints import shown_address
from ingest_assets.model.errors import ItemError

HARMLESS = "text"
PASSING = (EndpointBusy, EndpointTimeout, EndpointUnreachable, EndpointAnswerUnusable)
_FINAL = (*REFUSALS, WrongDimension)
_BROKEN_OFF = (httpx.ReadError, httpx.WriteError, httpx.CloseError, httpx.RemoteProtocolError)
_NONSENSE_ATTEMPTS = 3
_REFUSAL_BYTES = 64 * 1024
_NUMBER_BYTES = 64  # of a number written out, generously
_ENVELOPE_BYTES = 1024 * 1024


@dataclass(eq=False)
class Tally:
    """What a batch of texts cost, over all attempts and divisions."""

    requests: int = 0
    retries: int = 0
    tokens: int = 0


class Endpoint:
    """Asks one address, from several threads at once; redirects are not followed, for the key goes along.

    A fault that meets a harmless text and would meet every other (a wrong key, model or dimension) stands for
    a while: whoever asks meanwhile is refused without a request. While the endpoint is down, each request has
    one attempt; a fault that may be one text's says nothing of the endpoint, unless it meets a harmless text.

    A pause that the endpoint asks for is waited out by all, also after a request was given up, and status 429
    does not mean that it is down. When nothing was answered for too long, nobody waits for a pause any more.
    """

    def __init__(self, options: DenseOptions, key: SecretStr | None, pace: Pace) -> None:
        remote = options.remote
        self._options, self._key, self._pace = options, key, pace
        self._address = shown_address(remote.url)
        self._waiting = Waiting(pace)
        self._requests = PerMinute(remote.requests_per_minute)
        self._tokens = PerMinute(remote.tokens_per_minute)
        self._lines = Lines(
            timeout=remote.timeout_seconds,
            headers={"Authorization": f"Bearer {key.get_secret_value()}"} if key else {},
            trust_env=remote.use_environment_proxies,
        )
        self._verdict: tuple[float, ItemError] | None = None
        self._is_down = False
        self._silent_since: float | None = None
        self.has_given_vectors = False

    def ask(self, texts: Sequence[str], tokens: int, tally: Tally, *, is_brief: bool = False) -> Answer:
        """The answer for the texts, of `tokens` by estimate; a passing fault is met with patience.

        If `is_brief`, there is none for a fault that may be one text's.
        """
        attempt = 0
        while True:
            attempt += 1
            self._require_no_verdict()
            try:
                answer = self._attempt(texts, tokens, tally)
                break
            except PASSING as error:
                self._waiting.pause(0)  # whoever closed the embedder broke the connection: that is no fault
                seconds = self._pause_seconds(error, attempt)
                if attempt >= self._most_attempts(error, is_brief):
                    raise self._given_up(error, attempt, texts) from None
                self._waiting.pause(seconds)
                tally.retries += 1
            except _FINAL as error:
                if list(texts) == [HARMLESS]:
                    self.pronounce(error)
                raise
        self._is_down, self._silent_since = False, None
        self.has_given_vectors |= any(not isinstance(vector, str) for vector in answer.vectors)
        return answer

    def pronounce(self, error: ItemError) -> None:
        """Let this error stand for all who ask within the next while."""
        self._verdict = (self._pace.monotonic(), error)

    def close(self) -> None:
        """Break off what is under way, and give the connections back."""
        self._waiting.close()
        self._lines.close()

    def _require_no_verdict(self) -> None:
        verdict = self._verdict
        if verdict and self._pace.monotonic() - verdict[0] < self._pace.verdict_seconds:
            raise type(verdict[1])(str(verdict[1]))

    def _most_attempts(self, error: ItemError, is_brief: bool) -> int:
        if self._is_down or (is_brief and isinstance(error, MAYBE_ONE_TEXT)):
            return 1
        most = 1 + self._options.remote.retries
        return min(most, _NONSENSE_ATTEMPTS) if isinstance(error, EndpointAnswerUnusable) else most

    def _given_up(self, error: ItemError, attempt: int, texts: Sequence[str]) -> ItemError:
        times = f" It was asked {attempt} times." if attempt > 1 else ""
        final = type(error)(f"{error}{times}", detail=error.detail)
        if list(texts) == [HARMLESS] or not isinstance(error, MAYBE_ONE_TEXT):
            self._note_silence(final)
        return final

    def _note_silence(self, error: ItemError) -> None:
        now = self._pace.monotonic()
        if self._silent_since is None:
            self._silent_since = now
        is_over = now - self._silent_since >= self._pace.longest_silence_seconds
        if is_over or not isinstance(error, EndpointThrottled):
            self._is_down = True
        if is_over and "retry_after_s" in error.detail:
            self.pronounce(error)  # else each of thousands would wait out its minute

    def _pause_seconds(self, error: ItemError, attempt: int) -> float:
        """How long to wait for the next attempt; a pause that no text can be the reason for is all's."""
        asked = error.detail.get("retry_after_s")
        seconds = self._pace.pause(attempt, asked)
        if asked is not None and not isinstance(error, MAYBE_ONE_TEXT):
            self._waiting.hold_all(seconds)
        return seconds

    def _attempt(self, texts: Sequence[str], tokens: int, tally: Tally) -> Answer:
        self._waiting.until_free()
        share = self._waiting.share(self._tokens, tokens)
        self._waiting.share(self._requests, 1)
        tally.requests += 1
        status, headers, body = self._exchanged(texts)
        if status != HTTPStatus.OK:
            raise refusal(status, headers, body, self._address, self._key, self._pace.epoch())
        answer = self._read(body, len(texts))
        share.amount = answer.tokens or tokens
        tally.tokens += answer.tokens
        if list(texts) == [HARMLESS]:
            _require_right_length(answer, self._address, self._options.dim or 0)
        return answer

    def _read(self, body: bytes, texts: int) -> Answer:
        try:
            return read_answer(body, texts, self._options.dim or 0)
        except EndpointAnswerUnusable as error:
            quoted = quoted_words(parsed_object(body), self._key)
            if quoted:
                raise EndpointAnswerUnusable(
                    f"The endpoint {self._address} answered with status 200 and no vectors{quoted}; check "
                    "embeddings.dense.model and embeddings.dense.remote, or run again later."
                ) from None
            raise EndpointAnswerUnusable(
                f"The endpoint {self._address} answered with {error}; check embeddings.dense.remote.url."
            ) from None

    def _exchanged(self, texts: Sequence[str]) -> tuple[int, httpx.Headers, bytes]:
        most = _ENVELOPE_BYTES + len(texts) * (self._options.dim or 0) * _NUMBER_BYTES
        seconds = self._options.remote.timeout_seconds
        with self._explained(), self._lines.posting(self._url, self._question(texts), seconds) as got:
            is_good = got.status_code == HTTPStatus.OK
            return got.status_code, got.headers, self._body(got, most if is_good else _REFUSAL_BYTES, is_good)

    def _body(self, response: httpx.Response, most: int, is_good: bool) -> bytes:
        """As much as an answer may be; of a refusal only the beginning counts."""
        body = bytearray()
        for block in response.iter_bytes():
            body += block
            if len(body) > most and not is_good:
                break
            if len(body) > most:
                raise EndpointAnswerUnusable(
                    f"The endpoint {self._address} answered with more than {most} bytes, which is no list of "
                    "such vectors; check embeddings.dense.remote.url."
                )
        return bytes(body)

    @property
    def _url(self) -> str:
        return self._options.remote.url

    def _question(self, texts: Sequence[str]) -> bytes:
        question: dict[str, Any] = {
            "model": self._options.model,
            "input": list(texts),
            "encoding_format": "float",
        }
        if self._options.remote.send_dimensions:
            question["dimensions"] = self._options.dim
        return json.dumps(question).encode()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except httpx.TimeoutException:
            limit = self._options.remote.timeout_seconds
            raise EndpointTimeout(
                f"The endpoint {self._address} did not answer within {limit:g} s; raise timeout_seconds "
                "or lower batch_size in embeddings.dense.remote, or run again later."
            ) from None
        except httpx.DecodingError:
            raise EndpointAnswerUnusable(
                f"The endpoint {self._address} answered with a broken compressed body."
            ) from None
        except RuntimeError:  # the client was closed meanwhile
            self._waiting.pause(0)
            raise
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _lost(error, self._address) from None


def _lost(error: Exception, address: str) -> EndpointUnreachable:
    words = " ".join(f"{type(error).__name__}: {error}".split())[:160].rstrip(": ")
    if isinstance(error, _BROKEN_OFF):
        return EndpointBrokeOff(
            f"The endpoint {address} broke off before its answer was whole ({words}); see the server's log, "
            "or run again later."
        )
    if _is_of_a_certificate(error):
        return EndpointUnreachable(
            f"The endpoint {address} shows no certificate that this worker trusts ({words}); set "
            "SSL_CERT_FILE to its authority's PEM file where workers run, or check "
            "embeddings.dense.remote.url."
        )
    return EndpointUnreachable(
        f"The endpoint {address} cannot be reached ({words}); start it, or check embeddings.dense.remote.url."
    )


def _is_of_a_certificate(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def _require_right_length(answer: Answer, address: str, dim: int) -> None:
    """A vector of a wrong length is its text's trouble, unless the text is harmless: then it is the dim."""
    (vector,) = answer.vectors
    if isinstance(vector, WrongLength):
        raise WrongDimension(
            f"The endpoint {address} gives vectors of {vector.length} numbers, and embeddings.dense.dim is "
            f"{dim}; set dim to what the model gives, or remote.send_dimensions if it can give others."
        )

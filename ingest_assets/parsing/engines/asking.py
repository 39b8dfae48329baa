"""One page, one question to a vision model, one answer. What goes wrong is told by status, not by words."""

import base64
import json
import random
import time
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from typing import Any

import httpx
from pydantic import SecretStr

from ingest_assets.model.endpoints import DENIED, is_busy, retry_after_s
from ingest_assets.model.errors import ItemError
from ingest_assets.model.vlm import VlmOptions
from ingest_assets.parsing.engines.errors import (
    VlmAnswerUnusable,
    VlmBusy,
    VlmDenied,
    VlmRefused,
    VlmTimeout,
    VlmUnreachable,
)

ATTEMPTS = 4
PAUSE_SECONDS = 1.0
MAX_PAUSE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said of a page, and why it stopped."""

    text: str
    finish_reason: str = ""


class PageAsker:
    """Asks one address, from several threads at once; redirects are not followed, for the key goes along."""

    def __init__(self, options: VlmOptions, key: SecretStr | None) -> None:
        self._options = options
        self._client = httpx.Client(
            timeout=options.timeout_seconds,
            headers={"Authorization": f"Bearer {key.get_secret_value()}"} if key else {},
            trust_env=options.use_environment_proxies,
            limits=httpx.Limits(max_connections=options.concurrency),
        )

    def ask(self, image: Any) -> Answer:
        """The answer for a page's picture; a busy server is asked a few times, with growing pauses."""
        question = self._question(image)
        for attempt in range(1, ATTEMPTS):
            try:
                return self._attempt(question)
            except (VlmBusy, VlmTimeout, VlmUnreachable) as error:
                time.sleep(_pause(error, attempt))
        return self._attempt(question)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def _question(self, image: Any) -> bytes:
        picture = BytesIO()
        image.convert("RGB").save(picture, "PNG")
        url = "data:image/png;base64," + base64.b64encode(picture.getvalue()).decode()
        content = [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "text", "text": self._options.prompt},
        ]
        return json.dumps(
            {
                "model": self._options.model,
                "messages": [{"role": "user", "content": content}],
                "temperature": 0,
                "max_tokens": self._options.max_tokens,
            }
        ).encode()

    def _attempt(self, question: bytes) -> Answer:
        address, limit = self._options.address, self._options.timeout_seconds
        try:
            response = self._client.post(
                self._options.url, content=question, headers={"Content-Type": "application/json"}
            )
        except httpx.TimeoutException:
            raise VlmTimeout(f"The vision model at {address} did not answer within {limit:g} s.") from None
        except httpx.HTTPError as error:
            kind = type(error).__name__
            raise VlmUnreachable(f"The vision model at {address} cannot be reached ({kind}).") from None
        if response.status_code != HTTPStatus.OK:
            raise _refusal(response, address)
        return _answer(response, address)


def _refusal(response: httpx.Response, address: str) -> ItemError:
    status = response.status_code
    said = f"The vision model at {address} answered with status {status}"
    if status in DENIED:
        return VlmDenied(f"{said}: the key is missing, wrong or not allowed in; see parsing.vlm.api_key_env.")
    if is_busy(status):
        wait = retry_after_s(response.headers.get("retry-after", ""), time.time())
        return VlmBusy(f"{said}.", detail=None if wait is None else {"retry_after": wait})
    return VlmRefused(f"{said}; check parsing.vlm.url and parsing.vlm.model.")


def _answer(response: httpx.Response, address: str) -> Answer:
    try:
        choice = json.loads(response.content)["choices"][0]
        content = choice["message"]["content"] or ""
        if isinstance(content, list):
            content = "".join(part.get("text") or "" for part in content)
        return Answer(content.strip(), str(choice.get("finish_reason") or ""))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise VlmAnswerUnusable(
            f"The vision model at {address} answered with something that is no chat completion; "
            "check parsing.vlm.url."
        ) from None


def _pause(error: ItemError, attempt: int) -> float:
    """What the server asks for, within reason; else twice as long each time."""
    usual = PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(1, 1.25)
    return min(float(error.detail.get("retry_after", usual)), MAX_PAUSE_SECONDS)

"""What a status other than 200 means: for this request, for these texts, or for all."""

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from pydantic import SecretStr

from ingest_assets.embedders.endpoint_errors import (
    BatchRefused,
    EndpointBusy,
    EndpointDenied,
    EndpointRefused,
)
from ingest_assets.model.endpoints import DENIED, is_busy, retry_after_s
from ingest_assets.model.errors import ItemError

_OF_THESE_TEXTS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
_NEVER = (HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
_NO_CREDIT = {"insufficient_quota", "billing_hard_limit_reached"}  # codes that come with status 429


def refusal(
    status: int, headers: Mapping[str, str], body: bytes, address: str, key: SecretStr | None, now: float
) -> ItemError:
    """The error for a status; what the server says is quoted, without the key."""
    content = _parsed(body)
    said = f"The endpoint {address} answered with status {status}"
    if status in DENIED:
        return EndpointDenied(
            f"{said}: the key is missing, wrong or not allowed in; see embeddings.dense.remote.api_key_env."
        )
    if _code(content) in _NO_CREDIT:
        return EndpointDenied(f"{said}: there is no credit left for the key; see the account it belongs to.")
    if status not in _NEVER and (status == HTTPStatus.CONFLICT or is_busy(status)):
        wait = retry_after_s(headers.get("retry-after", ""), now)
        return EndpointBusy(f"{said}.", detail=None if wait is None else {"retry_after_s": wait})
    quoted = _quoted(content, key)
    if status in _OF_THESE_TEXTS:
        return BatchRefused(f"{said}{quoted}")
    return EndpointRefused(f"{said}{quoted}; check embeddings.dense.remote.url and embeddings.dense.model.")


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _code(content: Mapping[str, Any]) -> str:
    error = content.get("error")
    return str(error.get("code")) if isinstance(error, dict) else ""


def _quoted(content: Mapping[str, Any], key: SecretStr | None) -> str:
    """The server's own words, on one line and not many."""
    words = " ".join(next(_words(content), "").split())
    if key is not None:
        words = words.replace(key.get_secret_value(), "…")
    return f": {words[:200]}" if words else ""


def _words(content: Mapping[str, Any]) -> Iterator[str]:
    error = content.get("error")
    inner = error.get("message") if isinstance(error, dict) else error
    for words in (inner, content.get("message"), content.get("detail")):
        if isinstance(words, str) and words:
            yield words

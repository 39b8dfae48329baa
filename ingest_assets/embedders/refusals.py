"""What a status other than 200 means: for this request, for these texts, or for all."""

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin

from pydantic import SecretStr

from ingest_assets.embedders.endpoint_errors import (
    BatchRefused,
    EndpointBusy,
    EndpointDenied,
    EndpointFailed,
    EndpointRefused,
    EndpointThrottled,
)
from ingest_assets.model.endpoints import DENIED, is_busy, retry_after_s, shown_address
from ingest_assets.model.errors import ItemError

_OF_THESE_TEXTS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
_NEVER = (HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
_OVERLOADED = (HTTPStatus.SERVICE_UNAVAILABLE, 529)  # no text's doing where a pause is asked for
_MOVED = (
    HTTPStatus.MOVED_PERMANENTLY,
    HTTPStatus.FOUND,
    HTTPStatus.SEE_OTHER,
    HTTPStatus.TEMPORARY_REDIRECT,
    HTTPStatus.PERMANENT_REDIRECT,
)
_TOO_MANY = (
    "lower embeddings.dense.remote.max_in_flight, or set requests_per_minute or tokens_per_minute beside it, "
    "or run again later"
)
_BROKEN = "see the server's log, or lower embeddings.dense.remote.max_in_flight, or run again later"
_QUOTED_CHARS = 200
_NO_CREDIT = {"insufficient_quota", "billing_hard_limit_reached"}  # codes that come with status 429


def refusal(
    status: int, headers: Mapping[str, str], body: bytes, address: str, key: SecretStr | None, now: float
) -> ItemError:
    """The error for a status; what the server says is quoted, without the key."""
    content = parsed_object(body)
    said = f"The endpoint {address} answered with status {status}"
    if status in DENIED:
        return EndpointDenied(
            f"{said}: the key is missing, wrong or not allowed in; see embeddings.dense.remote.api_key_env."
        )
    if _code(content) in _NO_CREDIT:
        return EndpointDenied(f"{said}: there is no credit left for the key; see the account it belongs to.")
    quoted = quoted_words(content, key)
    if status not in _NEVER and (status == HTTPStatus.CONFLICT or is_busy(status)):
        asked = headers.get("retry-after", "")
        wait = retry_after_s(asked, now)
        what_to_do = _TOO_MANY if status == HTTPStatus.TOO_MANY_REQUESTS else _BROKEN
        detail = None if wait is None else {"retry_after_s": wait}
        return _busy_kind(status, asks_for_a_pause=bool(asked))(
            f"{said}{quoted}; {what_to_do}.", detail=detail
        )
    if status in _OF_THESE_TEXTS:
        return BatchRefused(f"{said}{quoted}")
    place = _new_place(address, headers.get("location", "")) if status in _MOVED else ""
    if place:
        return EndpointRefused(
            f"{said}: it is at {place} now, and redirects are not followed; set embeddings.dense.remote.url "
            "to that if you trust it with the texts and the key."
        )
    return EndpointRefused(f"{said}{quoted}; check embeddings.dense.remote.url and embeddings.dense.model.")


def _busy_kind(status: int, *, asks_for_a_pause: bool) -> type[EndpointBusy]:
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return EndpointThrottled
    is_overloaded = status in _OVERLOADED and asks_for_a_pause
    is_broken = status >= HTTPStatus.INTERNAL_SERVER_ERROR and not is_overloaded
    return EndpointFailed if is_broken else EndpointBusy


def _new_place(address: str, location: str) -> str:
    """Where a redirect leads, as it may be shown; empty when it does not say, or says what is no address."""
    try:
        return shown_address(urljoin(address, location))[:_QUOTED_CHARS] if location else ""
    except ValueError:
        return ""


def parsed_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is; empty when it is none."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _code(content: Mapping[str, Any]) -> str:
    error = content.get("error")
    return str(error.get("code")) if isinstance(error, dict) else ""


def quoted_words(content: Mapping[str, Any], key: SecretStr | None) -> str:
    """The server's own words after a colon, on one line and not many; empty when it has none."""
    words = " ".join(next(_words(content), "").split())
    if key is not None:
        words = words.replace(key.get_secret_value(), "…")
    return f": {words[:_QUOTED_CHARS].rstrip('.')}" if words else ""


def _words(content: Mapping[str, Any]) -> Iterator[str]:
    error = content.get("error")
    inner = error.get("message") if isinstance(error, dict) else error
    for words in (inner, content.get("message"), content.get("detail")):
        if isinstance(words, str) and words:
            yield words

"""Rules for every model served over HTTP: URLs, API keys, status codes and `Retry-After`."""

import email.utils
import re
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

MAX_RETRY_AFTER_S = 24 * 3600.0
DENIED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED)
_BUSY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)


def is_busy(status: int) -> bool:
    """Return True for temporary errors: the same request may succeed later."""
    return status in _BUSY or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def validated_url(value: str) -> str:
    """Return a valid URL without credentials (settings are shown and logged), or an empty string."""
    try:
        parts = urlsplit(value)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname)
        has_credentials = parts.username is not None or parts.password is not None
    except ValueError:
        is_http, has_credentials = False, False
    if value and (has_credentials or not is_http or "#" in value):
        raise ValueError(
            "should be an http:// or https:// URL without a user name, a password or a #fragment"
        )
    return value


def redacted_url(url: str) -> str:
    """Return the URL without its query, which may contain secrets."""
    return url.partition("?")[0]


def find_key_fault(variable: str, environ: Mapping[str, str]) -> str:
    """Return what is wrong with the API key in the environment, without revealing it; empty if nothing."""
    key = environ.get(variable, "") if variable else ""
    if variable and not key:
        return f"{variable} is not set"
    if not key.isascii() or not key.isprintable() or key != key.strip():
        return f"{variable} contains characters that are not valid in a key"
    return ""


def retry_after_s(header: str, now_epoch_s: float) -> float | None:
    """Return the wait in seconds that a `Retry-After` header (seconds or a date) asks for, at most one day.

    Return None for 0, a past date or an invalid value: obeying those would use up all attempts at once.
    """
    header = header.strip()
    if re.fullmatch(r"\d+", header, re.ASCII):
        seconds = float(header[:9])
    else:
        date = epoch_s(header)
        seconds = 0.0 if date is None else date - now_epoch_s
    return min(seconds, MAX_RETRY_AFTER_S) if seconds > 0 else None


def epoch_s(text: str) -> float | None:
    """Parse an HTTP date; None if invalid."""
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError, IndexError):
        return None

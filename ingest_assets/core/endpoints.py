"""What holds for any model behind an address: how it is named, whose key is sent, what its statuses mean."""

import email.utils
import re
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

MAX_RETRY_AFTER_S = 24 * 3600.0
DENIED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED)
_BUSY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)


def is_busy(status: int) -> bool:
    """True for what may pass by itself: the same request can work later."""
    return status in _BUSY or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def checked_address(value: str) -> str:
    """Settings are shown and logged, so an address must not hold a secret; empty stays empty."""
    try:
        parts = urlsplit(value)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname)
        named = parts.username is not None or parts.password is not None
    except ValueError:
        is_whole, named = False, False
    if value and (named or not is_whole or "#" in value):
        raise ValueError("should be an http:// or https:// address without a user name or password")
    return value


def shown_address(url: str) -> str:
    """The URL as it may be shown: a query may hold what is nobody's business."""
    return url.partition("?")[0]


def key_fault(variable: str, environ: Mapping[str, str]) -> str:
    """What is wrong with the key that the environment holds, in words that do not tell it."""
    key = environ.get(variable, "") if variable else ""
    if variable and not key:
        return f"the environment has no {variable}"
    if not key.isascii() or not key.isprintable() or key != key.strip():
        return f"{variable} holds characters that no key has"
    return ""


def retry_after_s(given: str, now_epoch_s: float) -> float | None:
    """How long a `Retry-After` asks to wait, in seconds or until a date; at most a day.

    None where it asks for nothing: taken at its word, a 0 or a date that is past would spend all attempts
    within a moment.
    """
    given = given.strip()
    if re.fullmatch(r"\d+", given, re.ASCII):
        seconds = float(given[:9])
    else:
        moment = epoch_s(given)
        seconds = 0.0 if moment is None else moment - now_epoch_s
    return min(seconds, MAX_RETRY_AFTER_S) if seconds > 0 else None


def epoch_s(text: str) -> float | None:
    """The moment of a date in a header, or None."""
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError, IndexError):
        return None

"""Errors of a fetch. Status codes and exceptions map to types, never to words in a message."""

from collections.abc import Mapping
from typing import ClassVar

from ingest_assets.core.errors import Category, ItemError


class FetchError(ItemError):
    """A fetch failed. `detail` has the URL without secrets, the status and the `Retry-After` time."""

    category: Category = "io"
    code = "E_FETCH"
    is_host_failure: ClassVar[bool] = False  # counts against the host's circuit breaker


class UrlRefused(FetchError):
    """The URL is invalid, has another scheme than http and https, or contains credentials."""

    category = "input"
    code = "E_FETCH_URL"


class AddressRefused(FetchError):
    """The host is, or resolves to, an address that is not public; `fetch.allow_private` permits most."""

    category = "config"
    code = "E_FETCH_ADDRESS"


class NameUnknown(FetchError):
    """The host name cannot be resolved."""

    code = "E_FETCH_DNS"
    retryable = True
    is_host_failure = True


class ConnectionFailed(FetchError):
    """The connection failed, or ended before the response began."""

    code = "E_FETCH_CONNECTION"
    retryable = True
    is_host_failure = True


class BodyCutOff(FetchError):
    """The body ended early. The next attempt resumes if the server supports it."""

    code = "E_FETCH_CUT_OFF"
    retryable = True
    is_host_failure = True


class FetchTimeout(FetchError):
    """The connection, the wait for bytes or the whole fetch exceeded its timeout."""

    category = "timeout"
    code = "E_FETCH_TIMEOUT"
    retryable = True
    is_host_failure = True


class CertificateRefused(FetchError):
    """The server's certificate is not valid for this host."""

    category = "provider"
    code = "E_FETCH_CERTIFICATE"


class ProtocolBroken(FetchError):
    """The response is not valid HTTP, or its headers are too large."""

    category = "provider"
    code = "E_FETCH_PROTOCOL"


class EncodingRefused(FetchError):
    """The content encoding was not requested, or the body does not match it."""

    category = "provider"
    code = "E_FETCH_ENCODING"


class RedirectRefused(FetchError):
    """Too many redirects, or an invalid one."""

    category = "provider"
    code = "E_FETCH_REDIRECT"


class BodyTooLarge(FetchError):
    """The document is larger than the limit."""

    category = "input"
    code = "E_FETCH_TOO_LARGE"


class BombRefused(FetchError):
    """The compressed body expands out of proportion."""

    category = "input"
    code = "E_FETCH_BOMB"


class ServerUnavailable(FetchError):
    """The server is temporarily unable to respond."""

    category = "provider"
    code = "E_FETCH_UNAVAILABLE"
    retryable = True
    is_host_failure = True


class RateLimited(FetchError):
    """The server asks for fewer requests. It works, so its circuit breaker stays closed."""

    category = "provider"
    code = "E_FETCH_RATE_LIMITED"
    retryable = True


class AccessDenied(FetchError):
    """The server requires credentials, or denies access."""

    category = "input"
    code = "E_FETCH_DENIED"


class NotFound(FetchError):
    """The document does not exist, or no longer."""

    category = "input"
    code = "E_FETCH_NOT_FOUND"


class RequestRefused(FetchError):
    """The server rejects this request; a retry would not help."""

    category = "input"
    code = "E_FETCH_REFUSED"


class UnexpectedStatus(FetchError):
    """A status without a rule; not retried."""

    category = "unknown"
    code = "E_FETCH_STATUS"


class HostPaused(FetchError):
    """No request was made: the host is paused, because it failed too often or sent `Retry-After`."""

    category = "provider"
    code = "E_FETCH_HOST_RESTING"
    retryable = True


class StoreUnwritable(FetchError):
    """The download could not be written: a full disk, or missing permissions."""

    code = "E_FETCH_STORE"
    retryable = True


STATUS_ERRORS: Mapping[int, type[FetchError]] = {
    400: RequestRefused,
    401: AccessDenied,
    403: AccessDenied,
    404: NotFound,
    405: RequestRefused,
    408: ServerUnavailable,
    410: NotFound,
    422: RequestRefused,
    425: ServerUnavailable,
    429: RateLimited,
    500: ServerUnavailable,
    502: ServerUnavailable,
    503: ServerUnavailable,
    504: ServerUnavailable,
}

ADVICE: Mapping[type[FetchError], str] = {
    RequestRefused: "correct the URL",
    AccessDenied: "ask the site for access, or remove the document",
    NotFound: "correct the URL, or remove the document",
    UnexpectedStatus: "open the URL in a browser to see what it is",
}


def status_error(status: int, reason: str, url: str, retry_after_s: float | None) -> FetchError:
    """Return the error for a status without a document; `url` must come from `shown`."""
    kind = STATUS_ERRORS.get(status, UnexpectedStatus)
    wait = "" if retry_after_s is None else f" (Retry-After: {retry_after_s:.0f} s)"
    words = " ".join(f"{status} {reason}".split())
    advice = f"; {ADVICE[kind]}" if kind in ADVICE else ""
    return kind(
        f"{url} returned {words}{wait}{advice}.",
        detail={"url": url, "status": status, "retry_after_s": retry_after_s},
    )

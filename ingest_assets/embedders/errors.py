"""Why a text has no vector: the text's fault, the model's, the endpoint's or that of the settings."""

from collections.abc import Iterator
from contextlib import contextmanager

from ingest_assets.core.errors import Category, ConfigError, IngestError, ItemError

_WORDS_CHARS = 300


class TextTooLong(ItemError):
    """The text is longer than the model reads, and the settings say to refuse rather than to cut it."""

    category = "input"
    code = "E_TEXT_TOO_LONG"


class TextWithoutTokens(ItemError):
    """The model's tokenizer knows nothing in the text, and adds nothing to it."""

    category = "input"
    code = "E_TEXT_WITHOUT_TOKENS"


class TokenUnknown(ItemError):
    """The tokenizer gives a token that the network was not made for."""

    category = "config"
    code = "E_TOKEN_UNKNOWN"


class AnyText(ItemError):
    """What would have met any text: no one chunk is to blame, and none is named."""


class ModelUnusable(AnyText):
    """The model of the settings cannot be opened."""

    category = "config"
    code = "E_MODEL_UNUSABLE"


class EmbedderClosed(AnyText):
    """The stage ended, and its embedder with it, while texts waited."""

    category = "cancelled"
    code = "E_EMBEDDER_CLOSED"
    retryable = True


# Of endpoints.


class EndpointKeyMissing(AnyText):
    """This worker's environment does not hold the key that the settings name."""

    category: Category = "config"
    code = "E_ENDPOINT_KEY"


class CertificatesUnreadable(AnyText):
    """This worker's environment names certificates that cannot be read."""

    category = "config"
    code = "E_ENDPOINT_CERTIFICATES"


class EndpointDenied(AnyText):
    """The endpoint rejects the key, or the account has no credit left."""

    category = "config"
    code = "E_ENDPOINT_DENIED"


class EndpointRefused(AnyText):
    """The endpoint accepts no such request: a wrong address or model, or an unknown field."""

    category = "config"
    code = "E_ENDPOINT_REFUSED"


class WrongDimension(AnyText):
    """All vectors have another length than the settings say."""

    category = "config"
    code = "E_ENDPOINT_DIMENSION"


class EndpointBusy(AnyText):
    """The endpoint is overloaded or asks for fewer requests."""

    category = "provider"
    code = "E_ENDPOINT_BUSY"
    retryable = True


class EndpointFailed(EndpointBusy):
    """The endpoint answered with a server error, which one text may have caused."""


class EndpointTimeout(AnyText):
    """The endpoint did not answer in time."""

    category = "timeout"
    code = "E_ENDPOINT_TIMEOUT"
    retryable = True


class EndpointUnreachable(AnyText):
    """There was no connection to the endpoint, or it broke before the answer was complete."""

    category = "provider"
    code = "E_ENDPOINT_UNREACHABLE"
    retryable = True


class EndpointAnswerUnusable(AnyText):
    """The endpoint answered with something other than a list of vectors, several times."""

    category = "provider"
    code = "E_ENDPOINT_ANSWER"


# The errors of one text are not `input` errors: another version of the server may accept it.


class VectorUnusable(ItemError):
    """The endpoint's vector for this text is missing or invalid, also when asked again."""

    category = "contract"
    code = "E_ENDPOINT_VECTOR"


class WrongLength(VectorUnusable):
    """The vector has another length than the settings say."""


class TextRefused(ItemError):
    """The endpoint refuses this text, or these texts together."""

    category = "provider"
    code = "E_TEXT_REFUSED"


class TextUnanswered(ItemError):
    """The endpoint answers other texts, but fails or hangs at this one. Retried by the next run only."""

    category = "provider"
    code = "E_TEXT_UNANSWERED"


# Of foreign code.


@contextmanager
def one_line_errors(before: str, kind: type[IngestError], after: str = "fix the package") -> Iterator[None]:
    """Turn whatever foreign code raises into one line that says where; our own errors pass unchanged."""
    try:
        yield
    except (ConfigError, ItemError, MemoryError):
        raise
    except Exception as error:  # foreign code may raise anything
        raise kind(f"{before} ({words_of(error)}); {after}.") from error


def words_of(error: Exception) -> str:
    """An exception's type and message on one line."""
    said = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".: ")
    return said[:_WORDS_CHARS]

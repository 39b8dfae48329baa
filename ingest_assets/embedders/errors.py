"""Errors of embedding, caused by the text, the model, the endpoint or the settings."""

from collections.abc import Iterator
from contextlib import contextmanager

from ingest_assets.core.errors import Category, ConfigError, IngestError, ItemError

_MAX_CHARS = 300


class TextTooLong(ItemError):
    """The text exceeds the model's limit, and `truncation = "refuse"`."""

    category = "input"
    code = "E_TEXT_TOO_LONG"


class TextWithoutTokens(ItemError):
    """The model's tokenizer finds no token in the text and adds no special tokens."""

    category = "input"
    code = "E_TEXT_WITHOUT_TOKENS"


class TokenUnknown(ItemError):
    """The tokenizer produces a token that is not in the network's vocabulary."""

    category = "config"
    code = "E_TOKEN_UNKNOWN"


class EmbedderError(ItemError):
    """An error that any text would get; its message names no chunk."""


class ModelUnusable(EmbedderError):
    """The configured model cannot be opened."""

    category = "config"
    code = "E_MODEL_UNUSABLE"


class EmbedderClosed(EmbedderError):
    """The stage stopped and closed its embedder while texts were waiting."""

    category = "cancelled"
    code = "E_EMBEDDER_CLOSED"
    retryable = True


# Endpoints.


class EndpointKeyMissing(EmbedderError):
    """The variable with the API key is missing or invalid in this worker's environment."""

    category: Category = "config"
    code = "E_ENDPOINT_KEY"


class CertificatesUnreadable(EmbedderError):
    """The CA certificates in this worker's environment cannot be read."""

    category = "config"
    code = "E_ENDPOINT_CERTIFICATES"


class EndpointDenied(EmbedderError):
    """The endpoint rejects the key, or the account has no credit left."""

    category = "config"
    code = "E_ENDPOINT_DENIED"


class EndpointRefused(EmbedderError):
    """The endpoint rejects every request: a wrong URL or model, or an unknown field."""

    category = "config"
    code = "E_ENDPOINT_REFUSED"


class WrongDimension(EmbedderError):
    """No vector has the length in `embeddings.dense.dim`."""

    category = "config"
    code = "E_ENDPOINT_DIMENSION"


class EndpointBusy(EmbedderError):
    """The endpoint is overloaded or asks for fewer requests."""

    category = "provider"
    code = "E_ENDPOINT_BUSY"
    retryable = True


class EndpointFailed(EndpointBusy):
    """The endpoint returned a server error, which one text may have caused."""


class EndpointTimeout(EmbedderError):
    """The endpoint did not answer in time."""

    category = "timeout"
    code = "E_ENDPOINT_TIMEOUT"
    retryable = True


class EndpointUnreachable(EmbedderError):
    """The connection failed, or broke before the response was complete."""

    category = "provider"
    code = "E_ENDPOINT_UNREACHABLE"
    retryable = True


class EndpointAnswerUnusable(EmbedderError):
    """The endpoint repeatedly returned something other than a list of vectors."""

    category = "provider"
    code = "E_ENDPOINT_ANSWER"


# Errors of one text. Their category is not `input`: another version of the server may accept it.


class VectorUnusable(ItemError):
    """The endpoint's vector for this text is missing or invalid, also after a retry."""

    category = "contract"
    code = "E_ENDPOINT_VECTOR"


class WrongLength(VectorUnusable):
    """The vector does not have the length in `embeddings.dense.dim`."""


class TextRefused(ItemError):
    """The endpoint rejects this text, or these texts together."""

    category = "provider"
    code = "E_TEXT_REFUSED"


class TextUnanswered(ItemError):
    """The endpoint fails or hangs on this text only. Not retried before the next run."""

    category = "provider"
    code = "E_TEXT_UNANSWERED"


# Foreign code.


@contextmanager
def one_line_errors(prefix: str, kind: type[IngestError], advice: str = "Fix the package.") -> Iterator[None]:
    """Raise errors of foreign code as `kind` with a one-line message; our own pass unchanged."""
    try:
        yield
    except (ConfigError, ItemError, MemoryError):
        raise
    except Exception as error:  # foreign code may raise anything
        raise kind(f"{prefix} ({describe_error(error)}). {advice}") from error


def describe_error(error: Exception) -> str:
    """Return an exception's type and message on one line."""
    line = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".: ")
    return line[:_MAX_CHARS]

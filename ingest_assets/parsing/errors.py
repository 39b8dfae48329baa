"""Errors of reading a document. Messages about a document are stored, so they contain no path or time.

`E_SECURITY_…`: the file could harm the machine or is not of its declared type. `E_PARSE_…`: its bytes
cannot be read. `E_OCR_…`: text recognition failed.
"""

from ingest_assets.core.errors import Category, ItemError


class ParseError(ItemError):
    """The file itself cannot be read; a retry would fail in the same way."""

    category: Category = "input"
    code = "E_PARSE_CORRUPT"
    retryable = False


class CorruptDocument(ParseError):
    """The file is damaged, truncated or violates the rules of its format."""

    code = "E_PARSE_CORRUPT"


class PasswordNeeded(ParseError):
    """The document is encrypted and needs a password."""

    code = "E_PARSE_PASSWORD"


class EmptyDocument(ParseError):
    """The file has zero bytes, or is a presentation without slides."""

    code = "E_PARSE_EMPTY"


class GarbledText(ParseError):
    """The file should be text but cannot be decoded in any supported encoding."""

    code = "E_PARSE_GARBLED"


class UnsupportedDocument(ParseError):
    """The file format is not supported."""

    code = "E_PARSE_UNSUPPORTED"


class InvalidPdf(ParseError):
    """The file should be a PDF but has no PDF header. A damaged PDF with a header is a `CorruptDocument`."""

    code = "E_SECURITY_INVALID_PDF"


class DocumentTooLarge(ParseError):
    """The file exceeds `parsing.max_mebibytes`, or a table in it has too many cells."""

    category = "config"  # a changed setting can admit it
    code = "E_SECURITY_TOO_LARGE"


class TooManyPages(ParseError):
    """The document exceeds `parsing.max_pages`."""

    category = "config"
    code = "E_SECURITY_TOO_MANY_PAGES"


class DecompressionBomb(ParseError):
    """A small file expands beyond a limit: archive members, streams, entities, pixels or drawings."""

    category = "config"
    code = "E_SECURITY_DECOMPRESSION_BOMB"


class OcrUnavailable(ParseError):
    """The OCR engine or its models are missing on this worker."""

    category = "config"
    code = "E_OCR_ENGINE_UNAVAILABLE"


class OcrTimeout(ParseError):
    """OCR of the document exceeded `parsing.ocr_timeout_seconds`."""

    category = "timeout"
    code = "E_OCR_TIMEOUT"
    retryable = True


class OcrFailed(ParseError):
    """OCR failed on every page."""

    code = "E_OCR_FAILED"


# Errors of the engine; the document may be fine. Messages contain no API key and no answer of the model.


class EngineUnavailable(ItemError):
    """Models, a library or the API key of the planned engine are missing on this worker."""

    category: Category = "config"
    code = "E_PARSE_ENGINE_UNAVAILABLE"


class VlmDenied(ItemError):
    """The vision model's server rejected the API key."""

    category = "config"
    code = "E_PARSE_VLM_DENIED"


class VlmRefused(ItemError):
    """The server rejected the request: unknown model, wrong URL or an image that is too large."""

    category = "config"
    code = "E_PARSE_VLM_REFUSED"


class VlmBusy(ItemError):
    """The server is overloaded or temporarily failing."""

    category = "provider"
    code = "E_PARSE_VLM_BUSY"
    retryable = True


class VlmTimeout(ItemError):
    """The server did not answer in time."""

    category = "timeout"
    code = "E_PARSE_VLM_TIMEOUT"
    retryable = True


class VlmUnreachable(ItemError):
    """The connection to the server failed or broke."""

    category = "provider"
    code = "E_PARSE_VLM_UNREACHABLE"
    retryable = True


class VlmAnswerUnusable(ItemError):
    """The server's answer could not be used as a page."""

    category = "provider"
    code = "E_PARSE_VLM_ANSWER"

"""Why a document cannot be read, as types. Messages are stored, so they hold no path, time or address.

`E_SECURITY_…` refuses a file for what it would do to the machine, or for not being what it says it is;
`E_PARSE_…` says that its bytes cannot be read; `E_OCR_…` that its pictures cannot.
"""

from ingest_assets.core.errors import Category, ItemError


class ParseError(ItemError):
    """The bytes are at fault, so a second attempt would end the same way."""

    category: Category = "input"
    code = "E_PARSE_CORRUPT"
    retryable = False


class CorruptDocument(ParseError):
    """The bytes are of the right kind, but damaged, truncated or against the rules of their format."""

    code = "E_PARSE_CORRUPT"


class PasswordNeeded(ParseError):
    """The document is encrypted and does not open without a password."""

    code = "E_PARSE_PASSWORD"


class EmptyDocument(ParseError):
    """The file holds zero bytes, or is a presentation without a slide."""

    code = "E_PARSE_EMPTY"


class GarbledText(ParseError):
    """The file says it is text, and its bytes are no text in any encoding known here."""

    code = "E_PARSE_GARBLED"


class UnsupportedDocument(ParseError):
    """No parser here reads this kind of file."""

    code = "E_PARSE_UNSUPPORTED"


class InvalidPdf(ParseError):
    """The file is called a PDF and does not begin like one. With a PDF's header, it is corrupt."""

    code = "E_SECURITY_INVALID_PDF"


class DocumentTooLarge(ParseError):
    """The file is larger than `parsing.max_mebibytes`, or a table in it than a table may be."""

    category = "config"  # a setting refuses it, and may change its mind
    code = "E_SECURITY_TOO_LARGE"


class TooManyPages(ParseError):
    """The document is longer than `parsing.max_pages`."""

    category = "config"
    code = "E_SECURITY_TOO_MANY_PAGES"


class DecompressionBomb(ParseError):
    """The file is small and what it unfolds to is not: members, streams, entities, pixels, drawings."""

    category = "config"
    code = "E_SECURITY_DECOMPRESSION_BOMB"


class OcrUnavailable(ParseError):
    """This worker lacks the OCR engine or its models."""

    category = "config"
    code = "E_OCR_ENGINE_UNAVAILABLE"


class OcrTimeout(ParseError):
    """Reading the document's pictures took longer than `parsing.ocr_timeout_seconds`."""

    category = "timeout"
    code = "E_OCR_TIMEOUT"
    retryable = True


class OcrFailed(ParseError):
    """The OCR engine failed on every page that could be read."""

    code = "E_OCR_FAILED"


# Why an engine could not read a document that may be perfectly fine. Messages hold no key and no answer.


class EngineUnavailable(ItemError):
    """This worker lacks what the plan counts on: the models, or the key."""

    category: Category = "config"
    code = "E_PARSE_ENGINE_UNAVAILABLE"


class VlmDenied(ItemError):
    """The server of the vision model does not know the key, or does not let it in."""

    category = "config"
    code = "E_PARSE_VLM_DENIED"


class VlmRefused(ItemError):
    """The server does not take such requests: no such model, a wrong address, a picture that is too large."""

    category = "config"
    code = "E_PARSE_VLM_REFUSED"


class VlmBusy(ItemError):
    """The server has too much to do, or is broken for the moment."""

    category = "provider"
    code = "E_PARSE_VLM_BUSY"
    retryable = True


class VlmTimeout(ItemError):
    """The server did not answer in time."""

    category = "timeout"
    code = "E_PARSE_VLM_TIMEOUT"
    retryable = True


class VlmUnreachable(ItemError):
    """There was no connection to the server, or it broke."""

    category = "provider"
    code = "E_PARSE_VLM_UNREACHABLE"
    retryable = True


class VlmAnswerUnusable(ItemError):
    """The server answered with something that is no page."""

    category = "provider"
    code = "E_PARSE_VLM_ANSWER"

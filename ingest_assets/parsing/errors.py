"""Why a document cannot be read, as types. Messages are stored, so they hold no path, time or address."""

from ingest_assets.model.errors import Category, ItemError


class ParseError(ItemError):
    """The bytes are at fault, so a second attempt would end the same way."""

    category: Category = "input"
    code = "E_PARSE_CORRUPT"
    retryable = False


class CorruptDocument(ParseError):
    """The bytes are not what the format asks for: truncated, damaged, or another kind of file."""

    code = "E_PARSE_CORRUPT"


class PasswordNeeded(ParseError):
    """The document is encrypted and does not open without a password."""

    code = "E_PARSE_PASSWORD"


class EmptyDocument(ParseError):
    """The file holds zero bytes."""

    code = "E_PARSE_EMPTY"


class UnsupportedDocument(ParseError):
    """No parser here reads this kind of file."""

    code = "E_PARSE_UNSUPPORTED"


class DocumentTooLarge(ParseError):
    """The file is larger than `parsing.max_mebibytes`."""

    category = "config"  # a setting refuses it, and may change its mind
    code = "E_SECURITY_TOO_LARGE"


class TooManyPages(ParseError):
    """The document is longer than `parsing.max_pages`."""

    category = "config"
    code = "E_SECURITY_TOO_MANY_PAGES"

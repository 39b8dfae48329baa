"""Why a text was not embedded."""

from ingest_assets.model.errors import ItemError


class TextTooLong(ItemError):
    """The text is longer than the model reads, and the settings say to refuse rather than to cut it."""

    category = "input"
    code = "E_TEXT_TOO_LONG"


class ModelUnusable(ItemError):
    """The model of the settings cannot be opened; no text is at fault."""

    category = "config"
    code = "E_MODEL_UNUSABLE"


class EmbedderClosed(ItemError):
    """The stage ended, and its embedder with it, while texts waited."""

    category = "cancelled"
    code = "E_EMBEDDER_CLOSED"
    retryable = True

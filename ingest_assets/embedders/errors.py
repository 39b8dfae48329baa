"""Why a text was not embedded."""

from ingest_assets.model.errors import ItemError


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

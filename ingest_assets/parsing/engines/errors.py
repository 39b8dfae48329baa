"""Why an engine could not read a document that may be perfectly fine. Messages hold no key and no answer."""

from ingest_assets.model.errors import Category, ItemError


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

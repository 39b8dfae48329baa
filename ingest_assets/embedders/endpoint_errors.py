"""Why an endpoint gave no vector. Messages hold no key; `retryable` is what may pass by itself."""

from ingest_assets.embedders.errors import AnyText
from ingest_assets.model.errors import Category, ItemError


class EndpointKeyMissing(AnyText):
    """This worker's environment does not hold the key that the settings name."""

    category: Category = "config"
    code = "E_ENDPOINT_KEY"


class CertificatesUnreadable(AnyText):
    """This worker's environment names certificates that cannot be read."""

    category = "config"
    code = "E_ENDPOINT_CERTIFICATES"


class EndpointDenied(AnyText):
    """The endpoint does not know the key, does not let it in, or has no credit left for it."""

    category = "config"
    code = "E_ENDPOINT_DENIED"


class EndpointRefused(AnyText):
    """The endpoint takes no such requests at all: a wrong address or model, or a field it does not know."""

    category = "config"
    code = "E_ENDPOINT_REFUSED"


class EndpointBusy(AnyText):
    """The endpoint has too much to do, or is broken for the moment."""

    category = "provider"
    code = "E_ENDPOINT_BUSY"
    retryable = True


class EndpointThrottled(EndpointBusy):
    """The endpoint is up and asks for fewer requests."""


class EndpointFailed(EndpointBusy):
    """The endpoint met an error of its own, which one text may have caused."""


class EndpointTimeout(AnyText):
    """The endpoint did not answer in time."""

    category = "timeout"
    code = "E_ENDPOINT_TIMEOUT"
    retryable = True


class EndpointUnreachable(AnyText):
    """There was no connection to the endpoint, or it broke."""

    category = "provider"
    code = "E_ENDPOINT_UNREACHABLE"
    retryable = True


class EndpointBrokeOff(EndpointUnreachable):
    """The connection broke before the answer was whole, which one text may have caused."""


class EndpointAnswerUnusable(AnyText):
    """The endpoint answered with something that is no list of vectors, several times."""

    category = "provider"
    code = "E_ENDPOINT_ANSWER"


class WrongDimension(AnyText):
    """Every vector has another length than the settings say; no other text would fare better."""

    category = "config"
    code = "E_ENDPOINT_DIMENSION"


class VectorUnusable(ItemError):
    """The endpoint's vector for this text is missing or is none, also when asked again.

    Not an `input` error: so fare all texts, too, when another model answers half-way.
    """

    category = "contract"
    code = "E_ENDPOINT_VECTOR"


class TextRefused(ItemError):
    """The endpoint takes other texts, but not this one.

    Not an `input` error: another version of the server may take it, so the next run asks again.
    """

    category = "provider"
    code = "E_TEXT_REFUSED"


class TextUnanswered(ItemError):
    """The endpoint answers others, but at this text it fails, breaks off, hangs or makes no sense.

    Not retryable, for it was asked often enough; the next run asks again.
    """

    category = "provider"
    code = "E_TEXT_UNANSWERED"


class BatchRefused(ItemError):
    """The endpoint does not take these texts together; smaller requests tell which it takes."""

    category = "provider"
    code = "E_TEXT_REFUSED"


REFUSALS = (EndpointDenied, EndpointRefused)  # a gateway may answer so to one text that it dislikes
MAYBE_ONE_TEXT = (EndpointFailed, EndpointTimeout, EndpointBrokeOff, EndpointAnswerUnusable)

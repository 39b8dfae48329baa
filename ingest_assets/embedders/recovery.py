"""A batch of texts, of which the endpoint may dislike some: the others get their vectors."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import SecretStr

from ingest_assets.embedders.answers import WrongLength
from ingest_assets.embedders.batching import Counted
from ingest_assets.embedders.endpoint import HARMLESS, PASSING, Endpoint, Tally
from ingest_assets.embedders.endpoint_errors import (
    MAYBE_ONE_TEXT,
    REFUSALS,
    BatchRefused,
    EndpointRefused,
    TextRefused,
    TextUnanswered,
    VectorUnusable,
)
from ingest_assets.embedders.pacing import Pace
from ingest_assets.model.embedding import DenseOptions
from ingest_assets.model.endpoints import shown_address
from ingest_assets.model.errors import ItemError

Outcome = np.ndarray | ItemError


@dataclass(frozen=True)
class _Search:
    """One of so many texts is at fault, and is looked for until then."""

    texts: int
    ends_at: float


@dataclass(eq=False)
class _Batch:
    """What is known of some texts while they are asked for, together or in pieces."""

    tally: Tally
    fault: ItemError | None = None  # the endpoint's own: what was not asked for yet would meet it too
    search: _Search | None = None


class Recovery:
    """Asks for a batch, and where that fails for smaller ones, until each text has a vector or an error.

    A batch is refused or miscounted as a whole: its halves are asked for. A vector that is none is asked for
    once more. Before the first vector ever, a refusal or a wrong length is tried on a harmless text: if that
    has no better luck, the settings are wrong and not the texts.

    Where the endpoint keeps failing at a batch, or refuses it as if the settings were wrong, and answers a
    harmless text, one of the texts is at fault and looked for. As the endpoint is up, a piece has one
    attempt; a search in which all hangs comes to an end.
    """

    def __init__(
        self,
        options: DenseOptions,
        key: SecretStr | None,
        pace: Pace,
        count: Callable[[Sequence[str]], list[int]],
    ) -> None:
        self._endpoint = Endpoint(options, key, pace)
        self._probing = threading.Lock()
        self._now = pace.monotonic
        self._timeout_seconds = options.remote.timeout_seconds
        self._address = shown_address(options.remote.url)
        self._usd_per_million = options.remote.usd_per_million_tokens
        self._count = count
        self._most_texts = options.remote.batch_size

    def embed(self, texts: Sequence[str]) -> list[Counted | ItemError]:
        """For each text its vector with what it cost, or its error."""
        tally, most = Tally(), self._most_texts
        outcomes: list[Outcome] = []
        for start in range(0, len(texts), most):
            outcomes += self._outcomes(texts[start : start + most], _Batch(tally))
        return self._counted(outcomes, self._count(texts), tally)

    def close(self) -> None:
        self._endpoint.close()

    def _outcomes(self, texts: Sequence[str], batch: _Batch, *, is_second: bool = False) -> list[Outcome]:
        if batch.fault is not None:
            return _for_each(texts, batch.fault)
        search, tokens = batch.search, sum(self._count(texts))
        try:
            answer = self._endpoint.ask(texts, tokens, batch.tally, is_brief=search is not None)
        except BatchRefused as error:
            return self._divided(texts, batch, error)
        except (*REFUSALS, *MAYBE_ONE_TEXT) as error:
            if search is None:
                return self._searched(texts, batch, error)
            return self._narrowed(texts, batch, search, error)
        except ItemError as error:
            batch.fault = error
            return _for_each(texts, error)
        if answer.is_miscounted and len(texts) > 1:
            return self._halves(texts, batch)
        if all(isinstance(vector, WrongLength) for vector in answer.vectors):
            batch.fault = self._fault_of_all(batch.tally)
            if batch.fault is not None:
                return _for_each(texts, batch.fault)
        outcomes: list[Outcome] = [
            self._unusable(vector) if isinstance(vector, str) else vector for vector in answer.vectors
        ]
        return outcomes if is_second else self._with_second_try(texts, outcomes, batch)

    def _with_second_try(self, texts: Sequence[str], outcomes: list[Outcome], batch: _Batch) -> list[Outcome]:
        bad = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, ItemError)]
        if bad:
            again = self._outcomes([texts[place] for place in bad], batch, is_second=True)
            for place, outcome in zip(bad, again, strict=True):
                outcomes[place] = outcome
        return outcomes

    def _divided(self, texts: Sequence[str], batch: _Batch, error: BatchRefused) -> list[Outcome]:
        batch.fault = self._fault_of_all(batch.tally)
        if batch.fault is not None:
            return _for_each(texts, batch.fault)
        if len(texts) == 1:
            return [TextRefused(f"{error}.")]
        return self._teaching_halves(texts, batch)

    def _searched(self, texts: Sequence[str], batch: _Batch, error: ItemError) -> list[Outcome]:
        """The fault may be one text's: if the endpoint is up it is, and the text is looked for."""
        batch.fault = self._fault_beside(error, batch)
        if batch.fault is not None:
            return _for_each(texts, batch.fault)
        # Long enough to find two texts with which every piece hangs.
        most_seconds = 2 * (len(texts).bit_length() + 1) * self._timeout_seconds
        batch.search = _Search(len(texts), self._now() + most_seconds)
        return self._outcomes(texts, batch)  # as a whole once more: the endpoint may just have come back

    def _narrowed(
        self, texts: Sequence[str], batch: _Batch, search: _Search, error: ItemError
    ) -> list[Outcome]:
        """The fault met a piece, though the endpoint is up, or was: smaller pieces tell whose it is."""
        is_refused = isinstance(error, REFUSALS)
        is_late = self._now() >= search.ends_at and not is_refused  # a refusal takes no time
        if len(texts) > 1 and not is_late:
            # A piece that fails just once teaches no size.
            is_whole = len(texts) == search.texts
            return self._teaching_halves(texts, batch) if is_whole else self._halves(texts, batch)
        batch.fault = error if is_late else self._fault_beside(error, batch)
        if batch.fault is not None:
            return _for_each(texts, batch.fault)
        if is_refused:
            return [
                TextRefused(
                    f"{error} Yet it refuses this text alone: a harmless one is answered, so the settings "
                    "are right, and a gateway's rule may be the reason."
                )
            ]
        return [TextUnanswered(f"{error} It fails at this text alone: a harmless one is answered.")]

    def _fault_beside(self, error: ItemError, batch: _Batch) -> ItemError | None:
        """The fault as the endpoint's own, unless it gives a vector for a harmless text."""
        if isinstance(error, REFUSALS):
            return self._fault_beside_refusal(error, batch)
        try:
            answer = self._endpoint.ask([HARMLESS], 1, batch.tally, is_brief=True)
        except (BatchRefused, *PASSING):
            return error
        except ItemError as fault:
            return fault
        return error if isinstance(answer.vectors[0], str) else None

    def _fault_beside_refusal(self, error: ItemError, batch: _Batch) -> ItemError | None:
        """The refusal of a harmless text, which stands for all; what else befalls that is no verdict."""
        with self._probing:  # where all requests meet a wrong key at once, one finds it out for the others
            try:
                answer = self._endpoint.ask([HARMLESS], 1, batch.tally, is_brief=True)
            except BatchRefused:
                self._endpoint.pronounce(error)
                return error
            except ItemError as fault:
                return fault
        return error if isinstance(answer.vectors[0], str) else None

    def _teaching_halves(self, texts: Sequence[str], batch: _Batch) -> list[Outcome]:
        outcomes = self._halves(texts, batch)
        if not any(isinstance(outcome, ItemError) for outcome in outcomes):
            # Nothing was wrong with any of them: they were too many, and so would the next be.
            self._most_texts = min(self._most_texts, max(1, (len(texts) + 1) // 2))
        return outcomes

    def _halves(self, texts: Sequence[str], batch: _Batch) -> list[Outcome]:
        middle = (len(texts) + 1) // 2
        return self._outcomes(texts[:middle], batch) + self._outcomes(texts[middle:], batch)

    def _fault_of_all(self, tally: Tally) -> ItemError | None:
        """Why no text at all is taken, if that is so."""
        if self._endpoint.has_given_vectors:
            return None
        try:
            self._endpoint.ask([HARMLESS], 1, tally)
        except BatchRefused as error:
            refused = EndpointRefused(
                f"{error}, also for a harmless text; check embeddings.dense: model, dim and remote."
            )
            self._endpoint.pronounce(refused)
            return refused
        except ItemError as error:
            return error
        return None

    def _unusable(self, words: str) -> ItemError:
        return VectorUnusable(f"The endpoint {self._address} gave no usable vector: {words}.")

    def _counted(
        self, outcomes: list[Outcome], weights: Sequence[int], tally: Tally
    ) -> list[Counted | ItemError]:
        """What the batch cost, shared out over the texts that have a vector, by their size."""
        good = [place for place, outcome in enumerate(outcomes) if not isinstance(outcome, ItemError)]
        costs = {
            "requests": tally.requests,
            "request_retries": tally.retries,
            "tokens": tally.tokens,
            "cost_micro_usd": round(tally.tokens * self._usd_per_million),
        }
        shares = {name: _shares(total, [weights[p] for p in good]) for name, total in costs.items() if total}
        found: list[Counted | ItemError] = []
        for outcome in outcomes:
            if isinstance(outcome, ItemError):
                found.append(outcome)
            else:
                found.append(Counted(outcome, {name: next(share) for name, share in shares.items()}))
        return found


def _for_each(texts: Sequence[str], error: ItemError) -> list[Outcome]:
    return [type(error)(str(error), detail=error.detail) for _ in texts]


def _shares(total: int, weights: Sequence[int]) -> Iterator[int]:
    """Whole numbers in proportion to the weights, which add up to the total."""
    before, sofar, everything = 0, 0, sum(weights)
    for weight in weights:
        sofar += weight
        after = total * sofar // everything
        yield after - before
        before = after

"""A batch of texts, of which the endpoint may dislike some: the others get their vectors."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from pydantic import SecretStr

from ingest_assets.embedders.batching import Counted
from ingest_assets.embedders.endpoint import Endpoint, Tally
from ingest_assets.embedders.endpoint_errors import (
    BatchRefused,
    EndpointRefused,
    TextRefused,
    VectorUnusable,
)
from ingest_assets.embedders.pacing import Pace
from ingest_assets.model.embedding import DenseOptions
from ingest_assets.model.endpoints import shown_address
from ingest_assets.model.errors import ItemError

Outcome = np.ndarray | ItemError
_HARMLESS = "text"


class Recovery:
    """Asks for a batch, and where that fails for smaller ones, until each text has a vector or an error.

    A batch is refused or miscounted as a whole: its halves are asked for. A vector that is none is asked for
    once more. Before the first answer ever, a refusal is tried on a harmless text: if that is refused too,
    the settings are wrong and not the texts.
    """

    def __init__(
        self,
        options: DenseOptions,
        key: SecretStr | None,
        pace: Pace,
        count: Callable[[Sequence[str]], list[int]],
    ) -> None:
        self._endpoint = Endpoint(options, key, pace)
        self._address = shown_address(options.remote.url)
        self._usd_per_million = options.remote.usd_per_million_tokens
        self._count = count
        self._most_texts = options.remote.batch_size

    def embed(self, texts: Sequence[str]) -> list[Counted | ItemError]:
        """For each text its vector with what it cost, or its error."""
        tally, most = Tally(), self._most_texts
        outcomes: list[Outcome] = []
        for start in range(0, len(texts), most):
            outcomes += self._outcomes(texts[start : start + most], tally)
        return self._counted(outcomes, self._count(texts), tally)

    def close(self) -> None:
        self._endpoint.close()

    def _outcomes(self, texts: Sequence[str], tally: Tally, *, is_second: bool = False) -> list[Outcome]:
        try:
            answer = self._endpoint.ask(texts, sum(self._count(texts)), tally)
        except BatchRefused as error:
            return self._divided(texts, tally, error)
        except ItemError as error:
            return [type(error)(str(error), detail=error.detail) for _ in texts]
        if answer.is_miscounted and len(texts) > 1:
            return self._halves(texts, tally)
        outcomes: list[Outcome] = [
            self._unusable(vector) if isinstance(vector, str) else vector for vector in answer.vectors
        ]
        return outcomes if is_second else self._with_second_try(texts, outcomes, tally)

    def _with_second_try(self, texts: Sequence[str], outcomes: list[Outcome], tally: Tally) -> list[Outcome]:
        bad = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, ItemError)]
        if bad:
            again = self._outcomes([texts[place] for place in bad], tally, is_second=True)
            for place, outcome in zip(bad, again, strict=True):
                outcomes[place] = outcome
        return outcomes

    def _divided(self, texts: Sequence[str], tally: Tally, error: BatchRefused) -> list[Outcome]:
        fault = self._fault_of_all(tally)
        if fault is not None:
            return [type(fault)(str(fault)) for _ in texts]
        if len(texts) == 1:
            return [TextRefused(f"{error}.")]
        outcomes = self._halves(texts, tally)
        if not any(isinstance(outcome, ItemError) for outcome in outcomes):
            # Nothing was wrong with any of them: they were too many, and so would the next be.
            self._most_texts = min(self._most_texts, max(1, (len(texts) + 1) // 2))
        return outcomes

    def _halves(self, texts: Sequence[str], tally: Tally) -> list[Outcome]:
        middle = (len(texts) + 1) // 2
        return self._outcomes(texts[:middle], tally) + self._outcomes(texts[middle:], tally)

    def _fault_of_all(self, tally: Tally) -> ItemError | None:
        """Why no text at all is taken, if that is so."""
        if self._endpoint.has_given_vectors:
            return None
        try:
            self._endpoint.ask([_HARMLESS], 1, tally)
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


def _shares(total: int, weights: Sequence[int]) -> Iterator[int]:
    """Whole numbers in proportion to the weights, which add up to the total."""
    before, sofar, everything = 0, 0, sum(weights)
    for weight in weights:
        sofar += weight
        after = total * sofar // everything
        yield after - before
        before = after

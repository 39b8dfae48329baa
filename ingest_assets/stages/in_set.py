"""A family's stage with the set that it makes: tables of two models never stand in one folder."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ingest_assets.model.identity import canonical_json, sha256_text
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.schemas import TableSpec
from ingest_assets.stages.stage import Candidate, Stage

_ID_CHARS = 12


def set_id(stage: Stage) -> str:
    """One short name for all settings that can change rows. New versions of libraries are none: they are
    made up for in place."""
    return sha256_text(canonical_json([stage.name, dict(stage.config())]))[:_ID_CHARS]


@dataclass(frozen=True)
class StageInSet:
    """A recipe whose rows go to the tables of its set, and whose tables say so."""

    recipe: Stage
    set: str
    asset: str

    @property
    def name(self) -> str:
        return self.recipe.name

    @property
    def version(self) -> str:
        return self.recipe.version

    @property
    def spec(self) -> TableSpec:
        return replace(self.recipe.spec, asset=self.asset)

    @property
    def preload(self) -> tuple[str, ...]:
        return self.recipe.preload

    def config(self) -> Mapping[str, Any]:
        return self.recipe.config()

    def libraries(self) -> Mapping[str, str]:
        return self.recipe.libraries()

    def footer(self) -> Mapping[str, str]:
        return {**self.recipe.footer(), "set": self.set}

    @property
    def candidates(self) -> Callable[..., Iterator[Candidate]]:
        return self.recipe.candidates

    def rows(self, item: WorkItem, context: ItemContext) -> pa.Table:
        """As the recipe makes them."""
        return self.recipe.rows(item, context)

    def __getattr__(self, name: str) -> Any:
        """What only some recipes have."""
        if name.startswith("__") or name == "recipe":  # asked for while it is being unpickled
            raise AttributeError(name)
        return getattr(self.recipe, name)

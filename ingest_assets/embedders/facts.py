"""What planning needs to know of a model folder, for the providers that run it here."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ingest_assets.embedders.recipe import Recipe, Usage
from ingest_assets.model.embedding import DenseFacts
from ingest_assets.model.errors import ConfigError

# transformers loads them with their decoder, which needs a text of its own; that library takes the encoder.
_ENCODERS_OF_TWO = {"t5", "mt5", "umt5", "longt5", "switch_transformers"}
_CHANGES_NO_PASSAGE = {"query_prefix", "refuses_long"}


def facts_of(
    provider: str, recipe: Recipe, usage: Usage, libraries: Mapping[str, str], **more: Any
) -> DenseFacts:
    """Facts whose identity holds what is done with the model, and nothing of how fast or where."""
    identity = {
        "provider": provider,
        "model": recipe.content_hash,
        **{key: value for key, value in asdict(usage).items() if key not in _CHANGES_NO_PASSAGE},
        **({} if recipe.truncation_side == "right" else {"truncation_side": recipe.truncation_side}),
        **more,
    }
    return DenseFacts(
        provider=provider,
        model_id=recipe.model_id,
        dim=usage.dim,
        max_tokens=usage.max_tokens,
        tokenizer=recipe.path,
        normalized=usage.normalized,
        identity=identity,
        libraries=libraries,
        passage_prefix=usage.passage_prefix,
    )


def foreign_modules(recipe: Recipe, usage: Usage) -> list[str]:
    """What the folder asks for and only sentence-transformers can do."""
    found = list(recipe.other_modules)
    if recipe.model_type in _ENCODERS_OF_TWO:
        found.append("a decoder to be left out")
    if not recipe.pools_prompt and (usage.query_prefix or usage.passage_prefix):
        found.append("pooling without the prompt")
    return found


def require_own_modules(recipe: Recipe, usage: Usage) -> None:
    """Refuse a folder of which a part would be left out."""
    foreign = foreign_modules(recipe, usage)
    if foreign:
        raise ConfigError(
            f"embeddings.dense.model: {recipe.name} has {foreign[0]}, which this provider does not run; "
            'set embeddings.dense.provider = "sentence-transformers".'
        )

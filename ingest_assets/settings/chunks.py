"""`[chunks]`: how a document is split into chunks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, field_validator

from ingest_assets.core.errors import ConfigError
from ingest_assets.settings.fields import Strict

Profile = Literal["cpu-small", "default", "long-context"]
Tables = Literal["docling", "values", "rows"]

_MIN_MAX_TOKENS = 16
_DEFAULT: Mapping[str, Any] = {
    "max_tokens": 256,
    "min_tokens": 0,
    "merge_peers": True,
    "overlap_tokens": 0,
    "soft_barrier_margin": 0,
    "tables": "docling",
}
PROFILES: Mapping[Profile, Mapping[str, Any]] = {
    "default": _DEFAULT,
    "cpu-small": {**_DEFAULT, "max_tokens": 128, "min_tokens": 16, "soft_barrier_margin": 32},
    "long-context": {
        **_DEFAULT,
        "max_tokens": 1024,
        "min_tokens": 128,
        "overlap_tokens": 64,
        "soft_barrier_margin": 256,
    },
}


class ChunkOptions(Strict):
    """How a document is split into chunks; unset keys have the profile's values. Tokens are counted with the
    embedder's own tokenizer."""

    profile: Profile = Field(
        "default",
        description="default: like Docling's HybridChunker, up to 256 tokens; cpu-small: up to 128, small "
        "chunks merged; long-context: up to 1024, small chunks merged, 64 tokens overlap.",
    )
    max_tokens: int | None = Field(
        None,
        description="Largest chunk in tokens, headings included; unset or 0 = the profile's value, or the "
        "embedder's limit if that is lower.",
    )
    min_tokens: int | None = Field(
        None, ge=0, description="Smaller chunks are merged with their neighbours; 0 = never."
    )
    merge_peers: bool | None = Field(None, description="Merge small neighbours under the same headings.")
    overlap_tokens: int | None = Field(
        None,
        ge=0,
        description="Tokens (whole words) at the end of a chunk that the next chunk of its section repeats.",
    )
    soft_barrier_margin: int | None = Field(
        None,
        ge=0,
        description="Small chunks are merged across headings and tables only if the result stays this many "
        "tokens below max_tokens.",
    )
    tables: Tables | None = Field(
        None,
        description="How to split a table that does not fit: docling = like HybridChunker; values = between "
        "values, each with the names of its row and column; rows = as Markdown, between rows, with the "
        "header repeated.",
    )
    tokenizer: str = Field(
        "",
        description="Folder (relative paths start at the home folder) or hub name of another tokenizer for "
        "counting; empty = the embedder's own.",
    )

    @field_validator("max_tokens", mode="before")
    @classmethod
    def _zero_is_unset(cls, value: Any) -> Any:
        return None if value in (0, "0") else value

    @field_validator("max_tokens")
    @classmethod
    def _is_large_enough(cls, value: int | None) -> int | None:
        if value is not None and value < _MIN_MAX_TOKENS:
            raise ValueError(f"should be at least {_MIN_MAX_TOKENS}, or 0 for the profile's")
        return value


@dataclass(frozen=True, slots=True)
class ResolvedOptions:
    """The options with all values set, within the embedder's token limit."""

    max_tokens: int
    min_tokens: int
    merge_peers: bool
    overlap_tokens: int
    soft_barrier_margin: int
    tables: Tables

    @property
    def new_tokens(self) -> int:
        """The tokens of a chunk without the overlap."""
        return self.max_tokens - self.overlap_tokens


def resolve_options(
    options: ChunkOptions, limit: int | None = None, *, special_tokens: int = 0, prefix_tokens: int = 0
) -> ResolvedOptions:
    """Return the options of the profile within the embedder's `limit`; raise `ConfigError` for conflicts.

    Values of the profile are reduced to fit. Explicit values are not, except by the few tokens that the
    embedder adds to each chunk.
    """
    explicit = options.model_dump(exclude={"profile", "tokenizer"}, exclude_none=True)
    values = {**PROFILES[options.profile], **explicit}
    if limit is not None:
        if values["max_tokens"] > limit and "max_tokens" in explicit:
            advice = f"lower it to {limit}" if limit >= _MIN_MAX_TOKENS else "set it to 0 to use that many"
            raise ConfigError(
                f"chunks.max_tokens: {values['max_tokens']} is more than the {limit} tokens that the "
                f"embedder reads; {advice}."
            )
        if prefix_tokens > limit // 2:
            raise ConfigError(
                f"embeddings.dense.passage_prefix: its {prefix_tokens} tokens are more than half of the "
                f"{limit} that the embedder reads; shorten it."
            )
        room = limit - special_tokens - prefix_tokens
        if room < 1:
            raise ConfigError(
                f"embeddings.dense: the embedder reads {limit} tokens, and those that it adds to each chunk "
                f"({special_tokens + prefix_tokens}) leave no room for text; use a model that reads more."
            )
        values["max_tokens"] = min(values["max_tokens"], room)
    max_tokens = values["max_tokens"]
    for name in ("min_tokens", "overlap_tokens", "soft_barrier_margin"):
        if name not in explicit:
            values[name] = min(values[name], max_tokens // 4)
        elif values[name] > max_tokens // 2:
            raise ConfigError(
                f"chunks.{name}: {values[name]} is more than half of the {max_tokens} tokens of a chunk; "
                f"lower it to {max_tokens // 2}."
            )
    return ResolvedOptions(**values)

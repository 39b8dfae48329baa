"""How a document is cut."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, field_validator

from ingest_assets.core.errors import ConfigError
from ingest_assets.settings.fields import Strict

Profile = Literal["cpu-small", "default", "long-context"]
Tables = Literal["docling", "values", "rows"]

_LEAST_TOKENS = 16
_PLAIN: Mapping[str, Any] = {
    "max_tokens": 256,
    "min_tokens": 0,
    "merge_peers": True,
    "overlap_tokens": 0,
    "soft_barrier_margin": 0,
    "tables": "docling",
}
PROFILES: Mapping[Profile, Mapping[str, Any]] = {
    "default": _PLAIN,
    "cpu-small": {**_PLAIN, "max_tokens": 128, "min_tokens": 16, "soft_barrier_margin": 32},
    "long-context": {
        **_PLAIN,
        "max_tokens": 1024,
        "min_tokens": 128,
        "overlap_tokens": 64,
        "soft_barrier_margin": 256,
    },
}


class ChunkOptions(Strict):
    """How a document is cut. Tokens are counted with the embedder's own tokenizer.

    What is not given is as the profile has it.
    """

    profile: Profile = Field(
        "default",
        description="default: as Docling's HybridChunker cuts, up to 256 tokens; cpu-small: up to 128, small "
        "runs joined; long-context: up to 1024, small runs joined, 64 tokens repeated.",
    )
    max_tokens: int | None = Field(
        None,
        description="Largest chunk, headings included, in tokens; none or 0 = the profile's, or less where "
        "the embedder reads less.",
    )
    min_tokens: int | None = Field(
        None, ge=0, description="Smaller chunks are joined with their neighbours; 0 = left as they are."
    )
    merge_peers: bool | None = Field(None, description="Merge small neighbours under the same headings.")
    overlap_tokens: int | None = Field(
        None,
        ge=0,
        description="So many tokens of a chunk's end, in whole words, also begin the next of its section.",
    )
    soft_barrier_margin: int | None = Field(
        None,
        ge=0,
        description="Small chunks are joined across headings and around tables only when what comes of it "
        "stays this much below max_tokens.",
    )
    tables: Tables | None = Field(
        None,
        description="A table that does not fit: docling = as HybridChunker cuts it by itself; values = "
        "written value by value, each with the names of its row and column, and cut between values; rows = "
        "written as Markdown, and cut between rows with the header repeated.",
    )
    tokenizer: str = Field(
        "",
        description="Folder (relative paths start at the home folder) or hub name of another tokenizer to "
        "count with; empty = the embedder's own.",
    )

    @field_validator("max_tokens", mode="before")
    @classmethod
    def _nothing_is_the_profiles(cls, value: Any) -> Any:
        return None if value in (0, "0") else value

    @field_validator("max_tokens")
    @classmethod
    def _has_room(cls, value: int | None) -> int | None:
        if value is not None and value < _LEAST_TOKENS:
            raise ValueError(f"should be at least {_LEAST_TOKENS}, or 0 for the profile's")
        return value


@dataclass(frozen=True, slots=True)
class Cut:
    """The options with nothing left open, within what the embedder reads."""

    max_tokens: int
    min_tokens: int
    merge_peers: bool
    overlap_tokens: int
    soft_barrier_margin: int
    tables: Tables

    @property
    def new_tokens(self) -> int:
        """What a chunk may hold beside what it repeats."""
        return self.max_tokens - self.overlap_tokens


def settled(
    options: ChunkOptions, limit: int | None = None, *, special_tokens: int = 0, prefix_tokens: int = 0
) -> Cut:
    """The options by profile, and by what the embedder reads; refuses what cannot be.

    A profile's numbers shrink where the embedder reads little; those that were given do not, but for the few
    tokens that the embedder itself adds to each chunk.
    """
    given = options.model_dump(exclude={"profile", "tokenizer"}, exclude_none=True)
    values = {**PROFILES[options.profile], **given}
    if limit is not None:
        if values["max_tokens"] > limit and "max_tokens" in given:
            advice = f"lower it to {limit}" if limit >= _LEAST_TOKENS else "set it to 0, for as many"
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
                f"({special_tokens + prefix_tokens}) leave no room for text; give a model that reads more."
            )
        values["max_tokens"] = min(values["max_tokens"], room)
    most = values["max_tokens"]
    for name in ("min_tokens", "overlap_tokens", "soft_barrier_margin"):
        if name not in given:
            values[name] = min(values[name], most // 4)
        elif values[name] > most // 2:
            raise ConfigError(
                f"chunks.{name}: {values[name]} is more than half of the {most} tokens of a chunk; "
                f"lower it to {most // 2}."
            )
    return Cut(**values)

"""How a document is cut."""

from pydantic import BaseModel, ConfigDict, Field


class ChunkOptions(BaseModel):
    """How a document is cut. Tokens are counted with the embedder's own tokenizer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int = Field(256, ge=16, description="Largest chunk, headings included, in tokens.")
    merge_peers: bool = Field(True, description="Merge small neighbours under the same headings.")

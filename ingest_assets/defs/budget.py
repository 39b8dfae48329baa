"""Whose tokens chunks are counted in, and how many of them there may be: the chunker follows the embedder."""

from ingest_assets.config import Settings
from ingest_assets.embedders.models import model_folder
from ingest_assets.stages.chunks import ChunksStage


def chunks_stage(settings: Settings) -> ChunksStage:
    """The recipe of chunks; refuses a budget that the embedder would cut."""
    stage = ChunksStage(settings.chunks, tokenizer(settings), token_limit(settings))
    _ = stage.cut
    return stage


def token_limit(settings: Settings) -> int | None:
    """What the dense embedder reads, special tokens included; none = nobody knows."""
    return model_folder(settings.embeddings.dense.model).max_tokens


def tokenizer(settings: Settings) -> str:
    """The tokenizer that is named for chunks, or else the dense embedder's own."""
    return settings.chunks.tokenizer or settings.embeddings.dense.model

"""Whose tokens chunks are counted in, and how many of them there may be: the chunker follows the embedder."""

from ingest_assets.config import Settings
from ingest_assets.embedders.models import PACKAGED
from ingest_assets.embedders.registry import describe_dense
from ingest_assets.model.embedding import PACKAGED_MODEL
from ingest_assets.stages.chunks import ChunksStage


def chunks_stage(settings: Settings) -> ChunksStage:
    """The recipe of chunks; refuses a budget that the embedder would cut."""
    stage = ChunksStage(settings.chunks, tokenizer(settings), token_limit(settings))
    _ = stage.cut
    return stage


def token_limit(settings: Settings) -> int | None:
    """What the dense embedder reads, special tokens included; none = nobody knows."""
    return describe_dense(settings.embeddings.dense).max_tokens


def tokenizer(settings: Settings) -> str:
    """The one named for chunks, or the dense embedder's own, or where nobody knows it the packaged one."""
    dense = settings.embeddings.dense
    if settings.chunks.tokenizer or dense.model in PACKAGED:
        return settings.chunks.tokenizer or dense.model
    return describe_dense(dense).tokenizer or PACKAGED_MODEL

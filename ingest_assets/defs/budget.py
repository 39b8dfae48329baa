"""Whose tokens chunks are counted in, and how many of them there may be: the chunker follows the embedder."""

from ingest_assets.config import Settings
from ingest_assets.embedders.models import PACKAGED
from ingest_assets.embedders.registry import BUILT_IN, describe_dense, resolve_dense
from ingest_assets.model.embedding import PACKAGED_MODEL, DenseFacts
from ingest_assets.stages.chunks import ChunksStage


def chunks_stage(settings: Settings) -> ChunksStage:
    """The recipe of chunks; refuses a budget that the embedder would cut."""
    facts = describe_dense(settings.embeddings.dense)
    stage = ChunksStage(settings.chunks, _tokenizer(settings, facts), facts.max_tokens, facts.passage_prefix)
    _ = stage.cut
    return stage


def _tokenizer(settings: Settings, facts: DenseFacts) -> str:
    """The one named for chunks, or the dense embedder's own, or where nobody knows it the packaged one."""
    dense = resolve_dense(settings.embeddings.dense)
    is_packaged = dense.provider in BUILT_IN and dense.model in PACKAGED  # others may have no use for a model
    own = dense.model if is_packaged else facts.tokenizer
    return settings.chunks.tokenizer or own or PACKAGED_MODEL

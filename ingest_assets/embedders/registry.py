"""Dense providers by name: those of this product, and those that installed packages offer."""

import functools
from importlib import import_module
from importlib.metadata import entry_points

from ingest_assets.embedders.choice import choose_provider
from ingest_assets.embedders.foreign import load_kind
from ingest_assets.embedders.openings import Openings
from ingest_assets.model.embedding import DenseFacts, DenseOptions
from ingest_assets.model.errors import ConfigError
from ingest_assets.model.ports import DenseKind, DenseProvider

GROUP = "ingest_assets.dense_providers"
# Looked up when asked for, so that naming one provider loads no other's libraries.
BUILT_IN = {
    "local": "ingest_assets.embedders.local:LocalKind",
    "onnx": "ingest_assets.embedders.onnx:OnnxKind",
    "onnx-int8": "ingest_assets.embedders.onnx:Int8Kind",
    "sentence-transformers": "ingest_assets.embedders.sentences:SentencesKind",
    "openai": "ingest_assets.embedders.remote:RemoteKind",
}
# By what was asked for, and the model that this is now.
_OPENINGS: Openings[tuple[DenseOptions, str], DenseProvider] = Openings()


def resolve_dense(options: DenseOptions) -> DenseOptions:
    """The same options with a provider in the place of "auto".

    Who plans resolves, and hands the result to those who embed: another machine might choose otherwise.
    """
    if options.provider != "auto":
        return options
    return options.model_copy(update={"provider": choose_provider(options)})


def describe_dense(options: DenseOptions) -> DenseFacts:
    """What the settings mean for planning, with nothing heavy loaded."""
    resolved = resolve_dense(options)
    return dense_kind(resolved.provider).describe(resolved)


def open_dense(options: DenseOptions) -> DenseProvider:
    """The process's one provider for these options; threads share it, and a forked child has its own."""
    resolved = resolve_dense(options)
    key = (resolved, describe_dense(resolved).model_id)
    who = f"embeddings.dense: provider {resolved.provider} cannot open {resolved.model}"
    return _OPENINGS.get(key, who, lambda: dense_kind(resolved.provider).open(resolved))


def close_dense(options: DenseOptions | None = None) -> None:
    """Close the process's provider for these options, or all; whoever asks again opens it anew."""
    wanted = options and resolve_dense(options)
    for provider in _OPENINGS.take(lambda key: wanted in (None, key[0])):
        provider.close()


@functools.cache
def dense_kind(name: str) -> DenseKind:
    """The provider of that name. This product's own names cannot be taken by a package."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        kind: DenseKind = getattr(import_module(module), attribute)()
        return kind
    offered = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name in offered:
        return load_kind(offered[name])
    known = ", ".join(["auto", *BUILT_IN, *offered])
    raise ConfigError(f"embeddings.dense.provider: no provider {name!r}; there are {known}.")

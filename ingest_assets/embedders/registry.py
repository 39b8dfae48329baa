"""Dense providers by name: those of this product, and those that installed packages offer."""

import functools
import math
import os
import threading
import time
from importlib import import_module
from importlib.metadata import entry_points

from ingest_assets.embedders.choice import choose_provider
from ingest_assets.embedders.errors import ModelUnusable
from ingest_assets.embedders.foreign import load_kind, told
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
REMEMBERED_S = 60.0

Key = tuple[int, DenseOptions, str]  # the process, what was asked for, and the model that this is now

_opening = threading.Lock()
_open: dict[Key, DenseProvider] = {}
_failed: dict[Key, tuple[float, str]] = {}


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
    key = (os.getpid(), resolved, describe_dense(resolved).model_id)
    with _opening:
        if key not in _open:
            _open[key] = _opened(resolved, key)
        return _open[key]


def _opened(options: DenseOptions, key: Key) -> DenseProvider:
    """A provider that fails to open fails for all documents at once: each try may take a minute."""
    failed_s, why = _failed.get(key, (-math.inf, ""))
    if time.monotonic() - failed_s < REMEMBERED_S:
        raise ModelUnusable(why)
    who = f"embeddings.dense: provider {options.provider} cannot open {options.model}"
    try:
        with told(who, ConfigError, "look at the model's files"):
            return dense_kind(options.provider).open(options)
    except ConfigError as error:  # not an endpoint that is busy, say: that may be asked again
        _failed[key] = time.monotonic(), str(error)
        raise ModelUnusable(str(error)) from error


def close_dense(options: DenseOptions | None = None) -> None:
    """Close the process's provider for these options, or all; whoever asks again opens it anew."""
    wanted = options and resolve_dense(options)
    with _opening:
        _failed.clear()
        own = [key for key in _open if key[0] == os.getpid() and wanted in (None, key[1])]
        closing = [_open.pop(key) for key in own]
    for provider in closing:
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

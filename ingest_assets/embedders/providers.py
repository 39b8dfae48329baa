"""Embedding providers: the registry, the choice of `auto`, and the open models of a process."""

import functools
import os
import threading
import time
from collections.abc import Callable, Hashable
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Generic, TypeVar

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.ports import DenseProvider, DenseProviderFactory
from ingest_assets.embedders.errors import ModelUnusable, one_line_errors
from ingest_assets.embedders.model_files import find_folder
from ingest_assets.embedders.model_layout import (
    SETTING,
    has_transformer,
    read_layout,
    unsupported_parts,
    usage_of,
)
from ingest_assets.embedders.onnx import export_fault
from ingest_assets.embedders.onnx_export import export_of
from ingest_assets.embedders.plugins import load_plugin
from ingest_assets.settings.embeddings import DenseFacts, DenseOptions

# The provider for `auto`, chosen without loading a library.


def choose_provider(options: DenseOptions) -> str:
    """Return `onnx` on a CPU unless inexact, otherwise `local`, or the only provider that can run it."""
    if options.remote.url:
        return "openai"
    if not has_transformer(find_folder(options.model, SETTING)):
        return "sentence-transformers"
    layout = read_layout(options.model)
    if unsupported_parts(layout, usage_of(layout, options)):
        return "sentence-transformers"
    # By the device files of NVIDIA's and AMD's drivers: importing torch would take seconds.
    has_gpu = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()
    is_on_cpu = options.device == "cpu" or (options.device == "auto" and not has_gpu)
    if not is_on_cpu or export_fault(layout) or export_of(layout, options.exports_path).is_exact is False:
        return "local"
    return "onnx"


# Open models of this process, each opened once and shared by its threads.


RETRY_OPEN_S = 60.0  # until a model that failed to open is retried

Key = TypeVar("Key", bound=Hashable)
Opened = TypeVar("Opened")


class OpenModels(Generic[Key, Opened]):
    """Open models by key; a forked child process has its own.

    For a minute, a failure is raised again without a new attempt, since an attempt can take that long.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[int, Key], Opened] = {}
        self._failed: dict[tuple[int, Key], tuple[float, str]] = {}

    def get(self, key: Key, label: str, open_model: Callable[[], Opened]) -> Opened:
        """Return the open model, or open it; `label` begins the error message."""
        with self._lock:
            process_key = os.getpid(), key
            if process_key in self._open:
                return self._open[process_key]
            failed = self._failed.get(process_key)
            if failed is not None and time.monotonic() - failed[0] < RETRY_OPEN_S:
                raise ModelUnusable(failed[1])
            try:
                with one_line_errors(label, ConfigError, "Check the model's files."):
                    self._open[process_key] = open_model()
            except ConfigError as error:  # other errors, such as a busy endpoint, can be retried at once
                self._failed[process_key] = time.monotonic(), str(error)
                raise ModelUnusable(str(error)) from error
            return self._open[process_key]

    def remove(self, is_selected: Callable[[Key], bool]) -> list[Opened]:
        """Remove and return the selected models, for closing; forget all failures."""
        with self._lock:
            self._failed.clear()
            selected = [key for key in self._open if key[0] == os.getpid() and is_selected(key[1])]
            return [self._open.pop(key) for key in selected]


GROUP = "ingest_assets.dense_providers"
# Imported on use, so that one provider does not load another's libraries.
BUILT_IN = {
    "local": "ingest_assets.embedders.torch:LocalFactory",
    "onnx": "ingest_assets.embedders.onnx:OnnxFactory",
    "onnx-int8": "ingest_assets.embedders.onnx:OnnxInt8Factory",
    "sentence-transformers": "ingest_assets.embedders.torch:SentenceTransformersFactory",
    "openai": "ingest_assets.embedders.remote:RemoteFactory",
}
# By options and model id, which changes with the model's files.
_OPEN_MODELS: OpenModels[tuple[DenseOptions, str], DenseProvider] = OpenModels()


def resolve_dense(options: DenseOptions) -> DenseOptions:
    """Return the options with "auto" replaced by a provider.

    Done once when planning, since another machine could choose a different provider.
    """
    if options.provider != "auto":
        return options
    return options.model_copy(update={"provider": choose_provider(options)})


def describe_dense(options: DenseOptions) -> DenseFacts:
    """Return what planning needs to know of a provider, without loading large libraries."""
    resolved = resolve_dense(options)
    return dense_factory(resolved.provider).describe(resolved)


def open_dense(options: DenseOptions) -> DenseProvider:
    """Return the process's provider for these options; threads share it, forked children do not."""
    resolved = resolve_dense(options)
    key = (resolved, describe_dense(resolved).model_id)
    label = f"embeddings.dense: provider {resolved.provider} cannot open {resolved.model}"
    return _OPEN_MODELS.get(key, label, lambda: dense_factory(resolved.provider).open(resolved))


def close_dense(options: DenseOptions | None = None) -> None:
    """Close the process's provider for these options, or all providers; `open_dense` reopens them."""
    resolved = options and resolve_dense(options)
    for provider in _OPEN_MODELS.remove(lambda key: resolved in (None, key[0])):
        provider.close()


@functools.cache
def dense_factory(name: str) -> DenseProviderFactory:
    """Return the provider factory of that name. Packages cannot replace built-in ones."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        factory: DenseProviderFactory = getattr(import_module(module), attribute)()
        return factory
    plugins = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name in plugins:
        return load_plugin(plugins[name])
    known = ", ".join(["auto", *BUILT_IN, *plugins])
    raise ConfigError(f"embeddings.dense.provider: unknown provider {name!r}. Known providers: {known}.")

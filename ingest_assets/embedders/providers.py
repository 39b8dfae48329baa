"""Embedding providers: the registry, what `auto` chooses, and which models are open."""

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
from ingest_assets.core.ports import DenseKind, DenseProvider
from ingest_assets.embedders.errors import ModelUnusable, one_line_errors
from ingest_assets.embedders.model_files import find_folder
from ingest_assets.embedders.model_recipe import (
    SETTING,
    foreign_modules,
    has_transformer,
    read_recipe,
    usage_of,
)
from ingest_assets.embedders.onnx import export_fault
from ingest_assets.embedders.onnx_export import export_of
from ingest_assets.embedders.plugins import load_kind
from ingest_assets.settings.embeddings import DenseFacts, DenseOptions

# Which provider `auto` means, decided without loading a library.


def choose_provider(options: DenseOptions) -> str:
    """ONNX on a CPU unless it proved inexact, else torch; sentence-transformers for what only it runs."""
    if options.remote.url:
        return "openai"
    if not has_transformer(find_folder(options.model, SETTING)):
        return "sentence-transformers"
    recipe = read_recipe(options.model)
    if foreign_modules(recipe, usage_of(recipe, options)):
        return "sentence-transformers"
    # By the devices of NVIDIA's and AMD's drivers: asking torch would take seconds.
    has_gpu = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()
    is_on_cpu = options.device == "cpu" or (options.device == "auto" and not has_gpu)
    if not is_on_cpu or export_fault(recipe) or export_of(recipe, options.exports_path).is_exact is False:
        return "local"
    return "onnx"


# Models that a process holds open: each once, for all its threads.


REMEMBERED_S = 60.0

Key = TypeVar("Key", bound=Hashable)
Opened = TypeVar("Opened")


class Openings(Generic[Key, Opened]):
    """What is open, by what was asked for; a forked child has its own.

    What cannot be opened is told to everybody who asks within a minute: each try may take as long.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[int, Key], Opened] = {}
        self._failed: dict[tuple[int, Key], tuple[float, str]] = {}

    def get(self, key: Key, who: str, open_it: Callable[[], Opened]) -> Opened:
        """The open one, or one opened now; `who` begins the line that says why it cannot be opened."""
        with self._lock:
            own = os.getpid(), key
            if own in self._open:
                return self._open[own]
            failed = self._failed.get(own)
            if failed is not None and time.monotonic() - failed[0] < REMEMBERED_S:
                raise ModelUnusable(failed[1])
            try:
                with one_line_errors(who, ConfigError, "look at the model's files"):
                    self._open[own] = open_it()
            except ConfigError as error:  # not an endpoint that is busy: that may be asked again
                self._failed[own] = time.monotonic(), str(error)
                raise ModelUnusable(str(error)) from error
            return self._open[own]

    def take(self, is_wanted: Callable[[Key], bool]) -> list[Opened]:
        """Let go of some, for whoever closes them. All that failed may be tried again."""
        with self._lock:
            self._failed.clear()
            own = [known for known in self._open if known[0] == os.getpid() and is_wanted(known[1])]
            return [self._open.pop(known) for known in own]


GROUP = "ingest_assets.dense_providers"
# Looked up when asked for, so that naming one provider loads no other's libraries.
BUILT_IN = {
    "local": "ingest_assets.embedders.torch:LocalKind",
    "onnx": "ingest_assets.embedders.onnx:OnnxKind",
    "onnx-int8": "ingest_assets.embedders.onnx:Int8Kind",
    "sentence-transformers": "ingest_assets.embedders.torch:SentencesKind",
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

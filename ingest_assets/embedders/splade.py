"""How a SPLADE model's own files say to make weights of logits, in the layout of sentence-transformers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest_assets.embedders.model_files import module_kind, read_modules, read_object
from ingest_assets.model.errors import ConfigError

_STRATEGY, _ACTIVATION = "pooling_strategy", "activation_function"
_KNOWN = {_STRATEGY: ("max", "sum"), _ACTIVATION: ("relu", "log1p_relu")}
_CHANGES_NO_WEIGHT = {"embedding_dimension", "word_embedding_dimension", "chunk_size"}
_KINDS = (["MLMTransformer", "SpladePooling"], ["Transformer", "SpladePooling"])
_TASK = "fill-mask"


@dataclass(frozen=True, slots=True)
class SpladePooling:
    """What becomes of the logits of a text's positions; without a file of its own, what the paper has."""

    is_sum: bool = False
    takes_log_twice: bool = False

    def weights(self, logits: Any, is_padding: Any) -> Any:
        """Weights (texts, entries) of logits (texts, positions, entries), which are written over: a copy of
        them would be the greatest thing in memory."""
        if self.is_sum:
            return self._activated(logits).masked_fill_(is_padding, 0).sum(dim=1)
        # The activation never falls, so that of the greatest logit is the greatest.
        return self._activated(logits.masked_fill_(is_padding, float("-inf")).amax(dim=1))

    def _activated(self, logits: Any) -> Any:
        once = logits.relu_().log1p_()
        return once.log1p_() if self.takes_log_twice else once


def read_splade(folder: Path, setting: str) -> tuple[Path, SpladePooling]:
    """Where the network of a model folder is, and its pooling; what is not done here is refused."""
    modules = read_modules(folder, setting)
    if not modules and not (folder / "modules.json").is_file():
        return folder, SpladePooling()
    kinds = [module_kind(module) for module in modules]
    if kinds not in _KINDS:
        raise ConfigError(
            f"{setting}: {folder / 'modules.json'} lists {', '.join(kinds) or 'nothing'}, which is not run "
            f"here; give a model of {' and '.join(_KINDS[0])}."
        )
    network, pooling = modules
    path = folder / network["path"]
    if kinds[0] == "Transformer":
        _require_logits(path / "sentence_bert_config.json", setting)
    return path, _pooling(folder / pooling["path"] / "config.json", setting)


def _require_logits(file: Path, setting: str) -> None:
    """A transformer of no other name gives hidden states, unless its file asks for logits."""
    task = read_object(file, setting).get("transformer_task")
    if task != _TASK:
        raise ConfigError(f"{setting}: {file} says transformer_task {task!r}; only {_TASK!r} is run here.")


def _pooling(file: Path, setting: str) -> SpladePooling:
    said = read_object(file, setting)
    for name in sorted(said.keys() - _CHANGES_NO_WEIGHT):
        if said[name] not in _KNOWN.get(name, ()):
            known = "; ".join(f"{key} {' or '.join(values)}" for key, values in _KNOWN.items())
            raise ConfigError(f"{setting}: {file} says {name} {said[name]!r}; known here are: {known}.")
    return SpladePooling(
        is_sum=said.get(_STRATEGY) == "sum", takes_log_twice=said.get(_ACTIVATION) == "log1p_relu"
    )

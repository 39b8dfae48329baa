"""Which provider `auto` means, decided without loading a library."""

from pathlib import Path

from ingest_assets.embedders.exports import export_of
from ingest_assets.embedders.facts import foreign_modules
from ingest_assets.embedders.models import find_folder
from ingest_assets.embedders.onnx import export_fault
from ingest_assets.embedders.recipe import SETTING, has_transformer, read_recipe, usage_of
from ingest_assets.model.embedding import DenseOptions


def choose_provider(options: DenseOptions) -> str:
    """ONNX on a CPU unless it proved inexact, else torch; sentence-transformers for what only it runs."""
    if options.remote.url:
        return "openai"
    if not has_transformer(find_folder(options.model, SETTING)):
        return "sentence-transformers"
    recipe = read_recipe(options.model)
    if foreign_modules(recipe, usage_of(recipe, options)):
        return "sentence-transformers"
    is_on_cpu = options.device == "cpu" or (options.device == "auto" and not _has_gpu())
    if not is_on_cpu or export_fault(recipe) or export_of(recipe, options.exports_path).is_exact is False:
        return "local"
    return "onnx"


def _has_gpu() -> bool:
    """By the devices of NVIDIA's and AMD's drivers; asking torch would take seconds."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()

"""Exports of models to ONNX: where they are kept, how they are made once for all processes of a machine, and
how close they come to torch.

`python -m ingest_assets.embedders.onnx_export MODEL FOLDER` makes one; `require_export` runs it.
"""

import fcntl
import json
import logging
import os
import shutil
import subprocess
import sys
import uuid
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.identity import canonical_json, hash_file, installed_versions, sha256_text
from ingest_assets.embedders.model_recipe import Recipe, read_recipe
from ingest_assets.embedders.torch import load_model, padded, pool_batch, read_tokenizer

# Raised when the same libraries would make another file of the same model.
VERSION = "2"
LIBRARIES = ("onnx", "onnxruntime", "torch", "transformers", "tokenizers")
FLOAT32, INT8, NOTE = "model.onnx", "model-int8.onnx", "export.json"
REFUSED = "refused: "  # begins the last line of an export that no provider could help
MIN_COSINE = 0.99999
_OPSET = 17
_PROBES = (
    "A colony swarms in May.",
    "",
    "Naïve café: 100 % Öl — ﬁne print, 日本語, e\u0301, \u200d and [SEP] in UPPER case.",
    "The boundary layer on a flat plate in supersonic flow separates where pressure rises. " * 9,
    "x1=3.14; y_2 = 'a\\tb' # code, with (brackets) and 1234567890 digits\n\n" * 60,
)


@dataclass(frozen=True, slots=True)
class Export:
    """A folder with a model's ONNX form; its note says what the files are and how exact they proved."""

    folder: Path

    @property
    def note(self) -> dict[str, Any]:
        """Empty when there is none, or it cannot be read."""
        try:
            note = json.loads((self.folder / NOTE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) else {}

    def is_whole(self) -> bool:
        """True when every file is as it was written."""
        files = self.note.get("files")
        if not isinstance(files, dict) or not files:
            return False
        paths = {self.folder / name: content_hash for name, content_hash in files.items()}
        return all(path.is_file() and hash_file(path)[0] == known for path, known in paths.items())

    @property
    def is_exact(self) -> bool | None:
        """Whether the vectors proved to be torch's; none when it has not been tried."""
        return self.note.get("is_exact")


def export_of(recipe: Recipe, exports_path: str) -> Export:
    """Where the model's ONNX form is, or will be: by what the model and the libraries are."""
    libraries = installed_versions(*LIBRARIES)
    key = sha256_text(canonical_json([VERSION, recipe.content_hash, libraries]))[:32]
    folder = Path(exports_path).expanduser()
    if not exports_path:
        folder = (
            Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ingest-assets" / "exports"
        )
    return Export(folder / f"{recipe.name.replace('/', '--')}-{key}")


def require_export(recipe: Recipe, exports_path: str) -> Export:
    """The model's ONNX form, made now if it is not there whole; several processes make it once."""
    export = export_of(recipe, exports_path)
    lock = export.folder.with_name(f".{export.folder.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # released also when the process dies
        if not export.is_whole():
            _make(recipe, export.folder)
    return export


def _make(recipe: Recipe, folder: Path) -> None:
    """Export into a folder beside, which takes its place when it is complete."""
    for leftover in folder.parent.glob(f".{folder.name}.*.tmp"):
        shutil.rmtree(leftover)
    scratch = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.tmp")
    scratch.mkdir()
    try:
        _export_in_child(recipe, scratch)
        if folder.exists():
            shutil.rmtree(folder)
        scratch.replace(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _export_in_child(recipe: Recipe, folder: Path) -> None:
    """In a process of its own: torch takes a gigabyte that embedding never needs again."""
    command = [sys.executable, "-m", "ingest_assets.embedders.onnx_export", recipe.source, str(folder)]
    # The child imports what this process imports.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}  # noqa: PTH109
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        if lines and lines[-1].startswith(REFUSED):
            raise ConfigError(lines[-1].removeprefix(REFUSED))
        raise ConfigError(
            f"embeddings.dense: {recipe.name} cannot be exported to ONNX "
            f'({lines[-1] if lines else done.returncode}); set embeddings.dense.provider = "local".'
        )


def export(recipe: Recipe, folder: Path) -> None:
    """Both forms of the model, and a note on how close each comes to torch."""
    torch, model, tokenizer = load_model(recipe.path, "cpu", attention="eager")
    _write_float32(torch, model, recipe, folder)
    _write_int8(folder)
    own = read_tokenizer(recipe)
    for each in (own, tokenizer):
        each.no_padding()
        each.enable_truncation(max_length=recipe.max_tokens)
    batch = [encoding.ids for encoding in own.encode_batch(list(_PROBES))]
    has_same_tokens = batch == [encoding.ids for encoding in tokenizer.encode_batch(list(_PROBES))]
    words = recipe.words or max(map(max, filter(None, batch))) + 1
    batch = [ids for ids in batch if ids and max(ids) < words]  # others are refused as texts, too
    inputs = [padded([ids], recipe.pad_id) for ids in batch]
    truth = [_pooled_in_all_ways(_by_torch(torch, model, *arrays)) for arrays in inputs]
    float32, int8 = (
        _cosines(truth, [_pooled_in_all_ways(infer(session, *arrays)) for arrays in inputs])
        for session in (open_session(folder / name, threads=1) for name in (FLOAT32, INT8))
    )
    note = {
        "model": recipe.model_id,
        "is_exact": bool(has_same_tokens and float32.min() >= MIN_COSINE),
        "has_same_tokens": has_same_tokens,
        "min_cosine": float(float32.min()),
        "int8_mean_cosine": float(int8.mean()),
    }
    # Written last: without the note and the hashes of its files the export does not count.
    files = {path.name: hash_file(path)[0] for path in sorted(folder.glob("*.onnx*"))}
    (folder / NOTE).write_text(json.dumps({**note, "files": files}, indent=1), encoding="utf-8")


def _write_float32(torch: Any, model: Any, recipe: Recipe, folder: Path) -> None:
    """As torch traces it, with attention and activations fused.

    Not with what is added before a layer norm: that fused operator is no vector code, and takes five times as
    long as its parts (a tenth of a whole inference).
    """
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    ids, mask = padded([[5, 6, 7, 8, 9, 10, 11], [5, 6, 7]], recipe.pad_id)
    raw = folder / "traced.tmp"
    axes = {0: "texts", 1: "tokens"}
    torch.onnx.export(
        Hidden().eval(),
        (torch.from_numpy(ids), torch.from_numpy(mask)),
        str(raw),
        input_names=["input_ids", "attention_mask"],
        output_names=["hidden"],
        dynamic_axes={"input_ids": axes, "attention_mask": axes, "hidden": axes},
        opset_version=_OPSET,
        dynamo=False,
    )
    heads = int(recipe.config.get("num_attention_heads") or recipe.config.get("n_heads") or 0)
    options = FusionOptions("bert")
    options.enable_skip_layer_norm = False
    fused = optimize_model(
        str(raw),
        "bert",
        num_heads=heads,
        hidden_size=recipe.width,
        opt_level=0,
        optimization_options=options,
    )
    fused.save_model_to_file(str(folder / FLOAT32))
    raw.unlink()


def _write_int8(folder: Path) -> None:
    """Per channel, and with one bit to spare: processors without VNNI would overflow."""
    from onnx import TensorProto
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        folder / FLOAT32,
        folder / INT8,
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        extra_options={"DefaultTensorType": TensorProto.FLOAT},  # fused operators have no known shapes
    )


def _by_torch(torch: Any, model: Any, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        return np.asarray(model(**inputs).last_hidden_state.numpy())


def _pooled_in_all_ways(hidden: np.ndarray) -> np.ndarray:
    """One text's tokens by three poolings, side by side."""
    return pool_batch(hidden, [hidden.shape[1]], ("cls", "mean", "max"), 3 * hidden.shape[2])[0]


def open_session(file: Path, threads: int) -> Any:
    """A session on the CPU that several threads may call."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Arenas keep what the longest batch took, for each shape anew.
    options.enable_mem_pattern = False
    return onnxruntime.InferenceSession(
        str(file),
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],  # as in `_write_float32`, which says why
    )


def infer(session: Any, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Vectors of all tokens (texts, tokens, width)."""
    return np.asarray(session.run(None, {"input_ids": ids, "attention_mask": mask})[0])


def _cosines(truth: list[np.ndarray], made: list[np.ndarray]) -> np.ndarray:
    pairs = zip(truth, made, strict=True)
    return np.array([a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b in pairs])


def main() -> None:
    """Run by `_export_in_child`; a failure ends in one last line."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    try:
        export(read_recipe(sys.argv[1]), Path(sys.argv[2]))
    except ConfigError as error:
        sys.exit(f"{REFUSED}{error}")


if __name__ == "__main__":
    main()

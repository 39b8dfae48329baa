"""Exports of models to ONNX: stored once for all processes of a machine, and compared with torch.

`require_export` runs `python -m ingest_assets.embedders.onnx_export MODEL FOLDER` to create one.
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
from ingest_assets.embedders.model_layout import ModelLayout, read_layout
from ingest_assets.embedders.torch import load_model, padded, pool_batch, read_tokenizer

# Increased when the same libraries would export the same model differently.
VERSION = "2"
LIBRARIES = ("onnx", "onnxruntime", "torch", "transformers", "tokenizers")
FLOAT32, INT8, NOTE = "model.onnx", "model-int8.onnx", "export.json"
REJECTED = "rejected: "  # begins the last line of output if the model itself is invalid
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
    """A folder with a model's ONNX files; its note has their hashes and how exact they are."""

    folder: Path

    @property
    def note(self) -> dict[str, Any]:
        """The content of the note; empty if it is missing or invalid."""
        try:
            note = json.loads((self.folder / NOTE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) else {}

    def is_complete(self) -> bool:
        """True if every file is unchanged since the export."""
        files = self.note.get("files")
        if not isinstance(files, dict) or not files:
            return False
        paths = {self.folder / name: content_hash for name, content_hash in files.items()}
        return all(path.is_file() and hash_file(path)[0] == expected for path, expected in paths.items())

    @property
    def is_exact(self) -> bool | None:
        """Whether the vectors equal those of torch; None if not compared yet."""
        return self.note.get("is_exact")


def export_of(layout: ModelLayout, exports_path: str) -> Export:
    """Return the export, existing or not, of this model by the installed libraries."""
    libraries = installed_versions(*LIBRARIES)
    key = sha256_text(canonical_json([VERSION, layout.content_hash, libraries]))[:32]
    folder = Path(exports_path).expanduser()
    if not exports_path:
        folder = (
            Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ingest-assets" / "exports"
        )
    return Export(folder / f"{layout.name.replace('/', '--')}-{key}")


def require_export(layout: ModelLayout, exports_path: str) -> Export:
    """Return the model's export; create it if missing or incomplete, under a lock between processes."""
    export = export_of(layout, exports_path)
    lock = export.folder.with_name(f".{export.folder.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # released also when the process dies
        if not export.is_complete():
            _create(layout, export.folder)
    return export


def _create(layout: ModelLayout, folder: Path) -> None:
    """Export into a temporary folder, which is renamed when complete."""
    for leftover in folder.parent.glob(f".{folder.name}.*.tmp"):
        shutil.rmtree(leftover)
    scratch = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.tmp")
    scratch.mkdir()
    try:
        _export_in_child(layout, scratch)
        if folder.exists():
            shutil.rmtree(folder)
        scratch.replace(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _export_in_child(layout: ModelLayout, folder: Path) -> None:
    """Export in a child process: torch takes a gigabyte that embedding does not need."""
    command = [sys.executable, "-m", "ingest_assets.embedders.onnx_export", layout.source, str(folder)]
    # The child imports what this process imports.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}  # noqa: PTH109
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        if lines and lines[-1].startswith(REJECTED):
            raise ConfigError(lines[-1].removeprefix(REJECTED))
        raise ConfigError(
            f"embeddings.dense: {layout.name} cannot be exported to ONNX "
            f'({lines[-1] if lines else done.returncode}). Set embeddings.dense.provider = "local".'
        )


def export(layout: ModelLayout, folder: Path) -> None:
    """Write the float32 and int8 files, and a note on how close each is to torch."""
    torch, model, tokenizer = load_model(layout.path, "cpu", attention="eager")
    _write_float32(torch, model, layout, folder)
    _write_int8(folder)
    used_tokenizer = read_tokenizer(layout)
    for instance in (used_tokenizer, tokenizer):
        instance.no_padding()
        instance.enable_truncation(max_length=layout.max_tokens)
    batch = [encoding.ids for encoding in used_tokenizer.encode_batch(list(_PROBES))]
    has_same_tokens = batch == [encoding.ids for encoding in tokenizer.encode_batch(list(_PROBES))]
    vocab_size = layout.vocab_size or max(map(max, filter(None, batch))) + 1
    batch = [ids for ids in batch if ids and max(ids) < vocab_size]  # embedding rejects such texts, too
    inputs = [padded([ids], layout.pad_id) for ids in batch]
    truth = [_all_poolings(_by_torch(torch, model, *arrays)) for arrays in inputs]
    float32, int8 = (
        _cosines(truth, [_all_poolings(infer(session, *arrays)) for arrays in inputs])
        for session in (open_session(folder / name, threads=1) for name in (FLOAT32, INT8))
    )
    note = {
        "model": layout.model_id,
        "is_exact": bool(has_same_tokens and float32.min() >= MIN_COSINE),
        "has_same_tokens": has_same_tokens,
        "min_cosine": float(float32.min()),
        "int8_mean_cosine": float(int8.mean()),
    }
    # Written last: an export without its note is incomplete.
    files = {path.name: hash_file(path)[0] for path in sorted(folder.glob("*.onnx*"))}
    (folder / NOTE).write_text(json.dumps({**note, "files": files}, indent=1), encoding="utf-8")


def _write_float32(torch: Any, model: Any, layout: ModelLayout, folder: Path) -> None:
    """Trace with torch, then fuse attention and activations.

    The addition before a layer norm is not fused: that operator is not vectorized and takes five times as
    long as its parts (a tenth of the inference).
    """
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    ids, mask = padded([[5, 6, 7, 8, 9, 10, 11], [5, 6, 7]], layout.pad_id)
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
    heads = int(layout.config.get("num_attention_heads") or layout.config.get("n_heads") or 0)
    options = FusionOptions("bert")
    options.enable_skip_layer_norm = False
    fused = optimize_model(
        str(raw),
        "bert",
        num_heads=heads,
        hidden_size=layout.width,
        opt_level=0,
        optimization_options=options,
    )
    fused.save_model_to_file(str(folder / FLOAT32))
    raw.unlink()


def _write_int8(folder: Path) -> None:
    """Quantize per channel, with 7 of 8 bits, because processors without VNNI would overflow."""
    from onnx import TensorProto
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        folder / FLOAT32,
        folder / INT8,
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        extra_options={"DefaultTensorType": TensorProto.FLOAT},  # shapes of fused operators are unknown
    )


def _by_torch(torch: Any, model: Any, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        return np.asarray(model(**inputs).last_hidden_state.numpy())


def _all_poolings(hidden: np.ndarray) -> np.ndarray:
    """Return one text's vectors by three poolings, joined."""
    return pool_batch(hidden, [hidden.shape[1]], ("cls", "mean", "max"), 3 * hidden.shape[2])[0]


def open_session(file: Path, threads: int) -> Any:
    """Open a CPU session that several threads can call."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Otherwise memory of the longest batch stays allocated, once per shape.
    options.enable_mem_pattern = False
    return onnxruntime.InferenceSession(
        str(file),
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],  # slower, see `_write_float32`
    )


def infer(session: Any, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the vectors of all tokens (texts, tokens, width)."""
    return np.asarray(session.run(None, {"input_ids": ids, "attention_mask": mask})[0])


def _cosines(truth: list[np.ndarray], exported: list[np.ndarray]) -> np.ndarray:
    pairs = zip(truth, exported, strict=True)
    return np.array([a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b in pairs])


def main() -> None:
    """Run the export for `_export_in_child`; the last line of output names a failure."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    try:
        export(read_layout(sys.argv[1]), Path(sys.argv[2]))
    except ConfigError as error:
        sys.exit(f"{REJECTED}{error}")


if __name__ == "__main__":
    main()

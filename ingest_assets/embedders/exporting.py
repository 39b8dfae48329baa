"""`python -m ingest_assets.embedders.exporting MODEL FOLDER`: a model becomes ONNX files, and is tried."""

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ingest_assets.embedders.exports import FLOAT32, INT8, REFUSED, seal
from ingest_assets.embedders.local import load_model, padded
from ingest_assets.embedders.onnx_session import infer, open_session
from ingest_assets.embedders.pooling import pool_batch
from ingest_assets.embedders.recipe import Recipe, read_recipe
from ingest_assets.embedders.tokens import read_tokenizer
from ingest_assets.model.errors import ConfigError

MIN_COSINE = 0.99999
_OPSET = 17
_PROBES = (
    "A colony swarms in May.",
    "",
    "Naïve café: 100 % Öl — ﬁne print, 日本語, e\u0301, \u200d and [SEP] in UPPER case.",
    "The boundary layer on a flat plate in supersonic flow separates where pressure rises. " * 9,
    "x1=3.14; y_2 = 'a\\tb' # code, with (brackets) and 1234567890 digits\n\n" * 60,
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
    truth = [_by_torch(torch, model, recipe, ids) for ids in batch]
    float32 = _cosines(truth, _by_onnx(folder / FLOAT32, recipe, batch))
    int8 = _cosines(truth, _by_onnx(folder / INT8, recipe, batch))
    note = {
        "model": recipe.model_id,
        "is_exact": bool(has_same_tokens and float32.min() >= MIN_COSINE),
        "has_same_tokens": has_same_tokens,
        "min_cosine": float(float32.min()),
        "int8_mean_cosine": float(int8.mean()),
    }
    seal(folder, note)


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


def _by_torch(torch: Any, model: Any, recipe: Recipe, ids: list[int]) -> np.ndarray:
    with torch.inference_mode():
        rows, mask = padded([ids], recipe.pad_id)
        inputs = {"input_ids": torch.from_numpy(rows), "attention_mask": torch.from_numpy(mask)}
        hidden = model(**inputs).last_hidden_state.numpy()
    return pool_batch(hidden, [len(ids)], ("cls", "mean", "max"), 3 * recipe.width)[0]


def _by_onnx(file: Path, recipe: Recipe, batch: list[list[int]]) -> list[np.ndarray]:
    session = open_session(file, threads=1)
    return [
        pool_batch(
            infer(session, *padded([ids], recipe.pad_id)),
            [len(ids)],
            ("cls", "mean", "max"),
            3 * recipe.width,
        )[0]
        for ids in batch
    ]


def _cosines(truth: list[np.ndarray], made: list[np.ndarray]) -> np.ndarray:
    pairs = zip(truth, made, strict=True)
    return np.array([a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b in pairs])


def main() -> None:
    """Called by `exports`; what goes wrong ends in one last line."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    try:
        export(read_recipe(sys.argv[1]), Path(sys.argv[2]))
    except ConfigError as error:
        sys.exit(f"{REFUSED}{error}")


if __name__ == "__main__":
    main()

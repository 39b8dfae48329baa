"""ONNX exports give torch's vectors, bit-equal in any batch, and are created once."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.batcher import collect_counts
from ingest_assets.embedders.errors import TextTooLong
from ingest_assets.embedders.model_layout import read_layout
from ingest_assets.embedders.onnx import OnnxEmbedder, OnnxFactory, OnnxInt8Factory
from ingest_assets.embedders.onnx_export import INT8, NOTE, export_of, require_export
from ingest_assets.embedders.providers import resolve_dense
from ingest_assets.embedders.torch import TorchEmbedder
from ingest_assets.settings.embeddings import DenseOptions
from ingest_tests.embedders.conftest import export_here
from ingest_tests.embedders.tiny_models import make_model

TEXTS = [
    "The bridge was found.",
    "",
    "A swarm in May, the hive, rust and soup. " * 12,
    "onion " * 40,
    "\x00\x01\x1f",
    *(f"cable {'x ' * number}." for number in range(1, 60, 7)),
]


def cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of rows."""
    return (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


def test_packaged_vectors_equal_torch(embedder: TorchEmbedder, onnx_embedder: OnnxEmbedder) -> None:
    """Also for empty text, control characters and text beyond the limit."""
    assert cosines(embedder.embed(TEXTS), onnx_embedder.embed(TEXTS)).min() >= 0.99999


def test_a_vector_is_bit_equal_alone_and_in_any_batch(onnx_embedder: OnnxEmbedder) -> None:
    """So tables are byte-equal however documents share micro-batches."""
    together = onnx_embedder.embed(TEXTS)
    with ThreadPoolExecutor(4) as callers:
        alone = list(callers.map(lambda text: onnx_embedder.embed([text])[0], TEXTS))

    assert [row.tobytes() for row in alone] == [row.tobytes() for row in together]
    assert onnx_embedder._batcher._batch_size > 1, "batches of one prove nothing"


def test_int8_vectors_are_close_and_do_not_depend_on_the_batch(embedder: TorchEmbedder) -> None:
    """Each text is a batch of its own."""
    int8 = OnnxInt8Factory().open(DenseOptions(provider="onnx-int8"))
    together = int8.embed(TEXTS)

    assert cosines(embedder.embed(TEXTS), together).mean() >= 0.985
    assert int8.embed(TEXTS[2:4]).tobytes() == together[2:4].tobytes()
    int8.close()


@pytest.mark.parametrize("kind", ["bert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta"])
def test_every_supported_architecture_is_exact(kind: str, tmp_path: Path) -> None:
    """With any pooling, the vectors equal those of torch."""
    model = make_model(tmp_path / "model", kind)
    created = export_here(model, tmp_path / "exports")
    options = DenseOptions(model=model, exports_path=str(tmp_path / "exports"), pooling="weighted_mean")

    assert (created.is_complete(), created.is_exact) == (True, True)
    assert resolve_dense(options).provider == "onnx"
    ours, torchs = OnnxFactory().open(options), TorchEmbedder(options)
    assert cosines(ours.embed(TEXTS), torchs.embed(TEXTS)).min() >= 0.99999
    assert ours.embed(TEXTS)[2].tobytes() == ours.embed(TEXTS[2:3])[0].tobytes()
    ours.close()


def test_prompts_limits_and_dimension_are_respected(tiny: str, tmp_path: Path) -> None:
    """From the model's files or the settings."""
    export_here(tiny, tmp_path)
    options = DenseOptions(provider="onnx", model=tiny, exports_path=str(tmp_path), dim=8)
    bare = options.model_copy(update={"passage_prefix": "", "query_prefix": ""})
    prompted, plain = OnnxFactory().open(options), OnnxFactory().open(bare)

    with collect_counts() as counts:
        passage = prompted.embed(["a bridge", "rust " * 99])
    assert counts == {"tokens": 6 + 16, "texts_cut": 1}
    assert passage.shape == (2, 8)
    assert passage[:1].tobytes() == plain.embed(["hive: a bridge"]).tobytes()
    assert prompted.embed(["a"], "query").tobytes() == plain.embed(["swarm: a"]).tobytes()
    prompted.close()
    plain.close()


def test_a_text_beyond_the_limit_can_be_rejected(tiny: str, tmp_path: Path) -> None:
    """The error names the text; the others can still be embedded."""
    export_here(tiny, tmp_path)
    options = DenseOptions(provider="onnx", model=tiny, exports_path=str(tmp_path), truncation="refuse")
    refusing = OnnxFactory().open(options)

    with pytest.raises(TextTooLong, match="limit of 16 tokens") as raised:
        refusing.embed(["a", "rust " * 99])
    assert raised.value.detail["index"] == 1
    assert len(refusing.embed(["a"])) == 1
    refusing.close()


@pytest.mark.parametrize("damage", ["cut", "gone", "note"])
def test_a_damaged_export_is_rebuilt(
    tiny: str, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power failure or a disk error."""
    from ingest_assets.embedders import onnx_export

    monkeypatch.setattr(
        onnx_export, "_export_in_child", onnx_export.export
    )  # in this process, where torch is loaded
    damaged = export_here(tiny, tmp_path)
    file = damaged.folder / (NOTE if damage == "note" else INT8)
    before = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(before[: len(before) // 2])

    assert not damaged.is_complete()
    assert require_export(read_layout(tiny), str(tmp_path)).is_complete()
    assert [path.suffix for path in tmp_path.iterdir() if path.is_dir()] == [damaged.folder.suffix]


@pytest.mark.slow
def test_two_processes_export_once(tiny: str, tmp_path: Path) -> None:
    """The second waits for the first and uses its files."""
    code = (
        "import sys; from ingest_assets.embedders.model_layout import read_layout\n"
        "from ingest_assets.embedders.onnx_export import require_export\n"
        "made = require_export(read_layout(sys.argv[1]), sys.argv[2])\n"
        "print(made.folder.stat().st_ino, made.is_exact)"
    )
    line = [sys.executable, "-c", code, tiny, str(tmp_path)]
    both = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=200)[0] for process in both]

    assert outputs[0] == outputs[1]
    assert outputs[0].endswith("True\n")


def test_a_model_with_an_inexact_export_runs_on_torch(tiny: str, tmp_path: Path) -> None:
    """With `auto`; an explicit `onnx` is an error that says what to do."""
    created = export_here(tiny, tmp_path)
    note = created.folder / NOTE
    note.write_text(note.read_text().replace('"is_exact": true', '"is_exact": false'))
    options = DenseOptions(model=tiny, exports_path=str(tmp_path))

    assert resolve_dense(options).provider == "local"
    with pytest.raises(ConfigError, match='set provider = "local"'):
        OnnxFactory().open(options.model_copy(update={"provider": "onnx"}))


@pytest.mark.slow
def test_a_model_that_is_inexact_in_8_bits_logs_a_warning(
    tiny: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It runs, because the settings ask for it."""
    options = DenseOptions(provider="onnx-int8", model=tiny, exports_path=str(tmp_path))
    note = require_export(read_layout(tiny), str(tmp_path)).folder / NOTE
    for cosine in (0.99, 0.93):
        note.write_text(json.dumps(json.loads(note.read_text()) | {"int8_mean_cosine": cosine}))
        OnnxInt8Factory().open(options).close()

    (warning,) = [line for line in caplog.messages if line.startswith("embeddings.dense: 8-bit vectors")]
    assert "a cosine of 0.930 with its float32" in warning


def test_other_versions_and_other_models_have_other_exports(tiny: str, tmp_path: Path) -> None:
    """An export belongs to one model and one set of library versions."""
    other = make_model(tmp_path / "other", "bert")

    assert export_of(read_layout(tiny), "x").folder != export_of(read_layout(other), "x").folder


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"device": "cuda"}, "runs on the CPU"), ({"dim": 33}, "more than the 32"), ({"max_tokens": 17}, "16")],
)
def test_invalid_settings_are_rejected_when_planning(tiny: str, changes: dict, says: str) -> None:
    """In one line, before anything is loaded."""
    with pytest.raises(ConfigError, match=says):
        OnnxFactory().describe(DenseOptions(model=tiny, **changes))


def test_an_unknown_architecture_runs_on_torch(tmp_path: Path) -> None:
    """Only tested architectures are exported."""
    model = Path(make_model(tmp_path / "model", "bert"))
    config = model / "config.json"
    config.write_text(config.read_text().replace('"bert"', '"newbert"'))

    assert resolve_dense(DenseOptions(model=str(model))).provider == "local"
    with pytest.raises(ConfigError, match="architecture newbert"):
        OnnxFactory().describe(DenseOptions(model=str(model)))

"""ONNX forms of models give torch's vectors, the same bits in any company, and are made once."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.batching import counting
from ingest_assets.embedders.errors import TextTooLong
from ingest_assets.embedders.model_recipe import read_recipe
from ingest_assets.embedders.onnx import Int8Kind, OnnxEmbedder, OnnxKind
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
    """Of each row with the row beside it."""
    return (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


def test_the_packaged_models_vectors_are_torchs(embedder: TorchEmbedder, onnx_embedder: OnnxEmbedder) -> None:
    """Empty text, control characters and text past the limit included."""
    assert cosines(embedder.embed(TEXTS), onnx_embedder.embed(TEXTS)).min() >= 0.99999


def test_a_vector_is_the_same_bits_alone_and_in_any_batch(onnx_embedder: OnnxEmbedder) -> None:
    """So tables are byte-equal however documents share micro-batches."""
    together = onnx_embedder.embed(TEXTS)
    with ThreadPoolExecutor(4) as callers:
        alone = list(callers.map(lambda text: onnx_embedder.embed([text])[0], TEXTS))

    assert [row.tobytes() for row in alone] == [row.tobytes() for row in together]
    assert onnx_embedder._batcher._batch_size > 1, "batches of one prove nothing"


def test_int8_vectors_are_close_and_do_not_depend_on_their_company(embedder: TorchEmbedder) -> None:
    """One text per inference, whatever is asked for at the same time."""
    int8 = Int8Kind().open(DenseOptions(provider="onnx-int8"))
    together = int8.embed(TEXTS)

    assert cosines(embedder.embed(TEXTS), together).mean() >= 0.985
    assert int8.embed(TEXTS[2:4]).tobytes() == together[2:4].tobytes()
    int8.close()


@pytest.mark.parametrize("kind", ["bert", "distilbert", "electra", "mpnet", "roberta", "xlm-roberta"])
def test_every_architecture_of_the_list_is_exact(kind: str, tmp_path: Path) -> None:
    """A model that auto takes ONNX for gives torch's vectors, pooled in any way."""
    model = make_model(tmp_path / "model", kind)
    made = export_here(model, tmp_path / "exports")
    options = DenseOptions(model=model, exports_path=str(tmp_path / "exports"), pooling="weighted_mean")

    assert (made.is_whole(), made.is_exact) == (True, True)
    assert resolve_dense(options).provider == "onnx"
    ours, torchs = OnnxKind().open(options), TorchEmbedder(options)
    assert cosines(ours.embed(TEXTS), torchs.embed(TEXTS)).min() >= 0.99999
    assert ours.embed(TEXTS)[2].tobytes() == ours.embed(TEXTS[2:3])[0].tobytes()
    ours.close()


def test_prompts_limits_and_dimension_are_kept(tiny: str, tmp_path: Path) -> None:
    """By the model's files, or the settings: what is done, is done to the text and counted."""
    export_here(tiny, tmp_path)
    options = DenseOptions(provider="onnx", model=tiny, exports_path=str(tmp_path), dim=8)
    bare = options.model_copy(update={"passage_prefix": "", "query_prefix": ""})
    prompted, plain = OnnxKind().open(options), OnnxKind().open(bare)

    with counting() as counts:
        passage = prompted.embed(["a bridge", "rust " * 99])
    assert counts == {"tokens": 6 + 16, "texts_cut": 1}
    assert passage.shape == (2, 8)
    assert passage[:1].tobytes() == plain.embed(["hive: a bridge"]).tobytes()
    assert prompted.embed(["a"], "query").tobytes() == plain.embed(["swarm: a"]).tobytes()
    prompted.close()
    plain.close()


def test_a_text_past_the_limit_can_be_refused(tiny: str, tmp_path: Path) -> None:
    """The error says which one it is; the others can still be embedded."""
    export_here(tiny, tmp_path)
    options = DenseOptions(provider="onnx", model=tiny, exports_path=str(tmp_path), truncation="refuse")
    refusing = OnnxKind().open(options)

    with pytest.raises(TextTooLong, match="longer than the 16 tokens") as raised:
        refusing.embed(["a", "rust " * 99])
    assert raised.value.detail["index"] == 1
    assert len(refusing.embed(["a"])) == 1
    refusing.close()


@pytest.mark.parametrize("damage", ["cut", "gone", "note"])
def test_a_damaged_export_is_made_again(
    tiny: str, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power may fail, disks may lose what they held."""
    from ingest_assets.embedders import onnx_export

    monkeypatch.setattr(
        onnx_export, "_export_in_child", onnx_export.export
    )  # in this process, where torch is loaded
    made = export_here(tiny, tmp_path)
    file = made.folder / (NOTE if damage == "note" else INT8)
    before = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(before[: len(before) // 2])

    assert not made.is_whole()
    assert require_export(read_recipe(tiny), str(tmp_path)).is_whole()
    assert [path.suffix for path in tmp_path.iterdir() if path.is_dir()] == [made.folder.suffix]


@pytest.mark.slow
def test_two_processes_export_once(tiny: str, tmp_path: Path) -> None:
    """The second waits for the first and finds the files."""
    code = (
        "import sys; from ingest_assets.embedders.model_recipe import read_recipe\n"
        "from ingest_assets.embedders.onnx_export import require_export\n"
        "made = require_export(read_recipe(sys.argv[1]), sys.argv[2])\n"
        "print(made.folder.stat().st_ino, made.is_exact)"
    )
    line = [sys.executable, "-c", code, tiny, str(tmp_path)]
    both = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=200)[0] for process in both]

    assert said[0] == said[1]
    assert said[0].endswith("True\n")


def test_a_model_that_proved_inexact_is_torchs(tiny: str, tmp_path: Path) -> None:
    """Auto must never stand in the way of a model that works; who insists is told what to do."""
    made = export_here(tiny, tmp_path)
    note = made.folder / NOTE
    note.write_text(note.read_text().replace('"is_exact": true', '"is_exact": false'))
    options = DenseOptions(model=tiny, exports_path=str(tmp_path))

    assert resolve_dense(options).provider == "local"
    with pytest.raises(ConfigError, match='set provider = "local"'):
        OnnxKind().open(options.model_copy(update={"provider": "onnx"}))


@pytest.mark.slow
def test_a_model_that_loses_much_in_8_bits_says_so(
    tiny: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It was asked for, so it runs; who asked should know."""
    options = DenseOptions(provider="onnx-int8", model=tiny, exports_path=str(tmp_path))
    note = require_export(read_recipe(tiny), str(tmp_path)).folder / NOTE
    for cosine in (0.99, 0.93):
        note.write_text(json.dumps(json.loads(note.read_text()) | {"int8_mean_cosine": cosine}))
        Int8Kind().open(options).close()

    (said,) = [line for line in caplog.messages if line.startswith("embeddings.dense: in 8 bits")]
    assert "a cosine of 0.930 with its own" in said


def test_other_versions_and_other_models_have_other_exports(tiny: str, tmp_path: Path) -> None:
    """An export is of one model and one set of libraries."""
    other = make_model(tmp_path / "other", "bert")

    assert export_of(read_recipe(tiny), "x").folder != export_of(read_recipe(other), "x").folder


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"device": "cuda"}, "runs on the CPU"), ({"dim": 33}, "more than the 32"), ({"max_tokens": 17}, "16")],
)
def test_settings_that_cannot_work_are_refused_when_planning(tiny: str, changes: dict, says: str) -> None:
    """In one line, before anything is loaded."""
    with pytest.raises(ConfigError, match=says):
        OnnxKind().describe(DenseOptions(model=tiny, **changes))


def test_an_unknown_architecture_is_torchs(tmp_path: Path) -> None:
    """Where we have proved nothing we export nothing."""
    model = Path(make_model(tmp_path / "model", "bert"))
    config = model / "config.json"
    config.write_text(config.read_text().replace('"bert"', '"newbert"'))

    assert resolve_dense(DenseOptions(model=str(model))).provider == "local"
    with pytest.raises(ConfigError, match="architecture newbert"):
        OnnxKind().describe(DenseOptions(model=str(model)))

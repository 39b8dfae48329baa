"""Docling's models with untrained weights: the files and architectures that it loads, created quickly.

Their results are meaningless, but the code that loads and runs them is that of the real ones.
"""

import json
from pathlib import Path
from typing import Any

from ingest_assets.parsing.engines import DOCLING_MODELS, LAYOUT, TABLEFORMER, DoclingModel
from ingest_tests.weights import weights

LABELS = (
    *("caption", "footnote", "formula", "list_item", "page_footer", "page_header", "picture"),
    *("section_header", "table", "text", "title", "document_index", "code", "checkbox_selected"),
    *("checkbox_unselected", "form", "key_value_region"),
)
_TAGS = ("<pad>", "<unk>", "<start>", "<end>", "ecel", "fcel", "lcel", "ucel", "xcel", "nl")
_HEADER_TAGS = ("ched", "rhed", "srow")


def file_of(name: str, content: bytes = b"\x00" * 8) -> bytes:
    """The minimal content of a model's file with this name."""
    return weights(content) if name.endswith(".safetensors") else b"{}"


def write_hollow_models(folder: Path, *models: DoclingModel, content: bytes = b"\x00" * 8) -> Path:
    """An artifacts folder with complete files that are no models: enough where they are only checked."""
    for model in models or DOCLING_MODELS:
        for name in model.files:
            path = folder / model.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file_of(name, content))
    return folder


def write_hollow_cache(folder: Path, commit: str = "c" * 40) -> Path:
    """The same files in the layout of the hub's cache."""
    for model in DOCLING_MODELS:
        repository = folder / f"models--{model.folder}"
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / model.revision).write_text(commit)
        for name in model.files:
            blob = repository / "blobs" / name.replace("/", "-")
            blob.parent.mkdir(exist_ok=True)
            blob.write_bytes(file_of(name))
            link = repository / "snapshots" / commit / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(blob)
    return folder


def write_untrained_models(folder: Path) -> Path:
    """An artifacts folder that Docling loads: it detects a table over most of each page."""
    _write_layout(folder / LAYOUT.folder)
    _write_tableformer((folder / TABLEFORMER.folder / TABLEFORMER.files[0]).parent)
    return folder


def _write_layout(folder: Path) -> None:
    import torch
    from transformers import RTDetrImageProcessor, RTDetrResNetConfig, RTDetrV2Config
    from transformers import RTDetrV2ForObjectDetection as Detector

    torch.manual_seed(1)
    backbone = RTDetrResNetConfig(
        embedding_size=16,
        hidden_sizes=[16, 32, 48, 64],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    config = RTDetrV2Config(
        backbone_config=backbone,
        id2label=dict(enumerate(LABELS)),
        label2id={label: at for at, label in enumerate(LABELS)},
        d_model=32,
        encoder_hidden_dim=32,
        encoder_in_channels=[32, 48, 64],
        encoder_ffn_dim=32,
        encoder_attention_heads=2,
        decoder_in_channels=[32, 32, 32],
        decoder_ffn_dim=32,
        decoder_layers=2,
        decoder_attention_heads=2,
        decoder_n_points=2,
        num_queries=12,
    )
    model = Detector(config).eval()
    with torch.no_grad():
        for head in (*model.model.decoder.class_embed, model.model.enc_score_head):
            head.bias.fill_(-6.0)
            head.bias[LABELS.index("table")] = 2.0
        model.model.decoder.bbox_embed[-1].layers[-1].bias[:] = torch.tensor([0.0, 0.0, 3.0, 3.0])
    model.save_pretrained(folder)
    RTDetrImageProcessor(size={"height": 640, "width": 640}).save_pretrained(folder)


def _write_tableformer(folder: Path) -> None:
    import torch
    from docling_ibm_models.tableformer.models.table04_rs.tablemodel04_rs import TableModel04_rs
    from safetensors.torch import save_model

    torch.manual_seed(1)
    folder.mkdir(parents=True)
    config = _tableformer_config()
    at = {**config, "model": {**config["model"], "save_dir": str(folder)}}
    model = TableModel04_rs(at, {"word_map": config["dataset_wordmap"]}, "cpu").eval()
    save_model(model, str(folder / "tableformer_accurate.safetensors"))
    (folder / "tm_config.json").write_text(json.dumps(config))


def _tableformer_config() -> dict[str, Any]:
    """The keys that the model reads, with one layer instead of six, and few steps."""
    return {
        "dataset": {
            "name": "untrained",
            "image_normalization": {"state": True, "mean": [0.9, 0.9, 0.9], "std": [0.2, 0.2, 0.2]},
            "resized_image": 448,
        },
        "model": {
            "type": "TableModel04_rs",
            "name": "untrained",
            "save_dir": "",
            "enc_image_size": 7,
            "hidden_dim": 512,
            "tag_embed_dim": 16,
            "tag_attention_dim": 64,
            "tag_decoder_dim": 512,
            "bbox_embed_dim": 64,
            "bbox_attention_dim": 64,
            "bbox_classes": 2,
            "enc_layers": 1,
            "dec_layers": 1,
            "nheads": 8,
            "dropout": 0.1,
        },
        "train": {"bbox": True},
        "predict": {"max_steps": 24, "beam_size": 1, "bbox": True, "pdf_cell_iou_thres": 0.05},
        "dataset_wordmap": {
            "word_map_tag": {tag: at for at, tag in enumerate((*_TAGS, *_HEADER_TAGS))},
            "word_map_cell": {},
        },
    }

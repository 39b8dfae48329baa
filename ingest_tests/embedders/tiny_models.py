"""Tiny real models: random weights and a tokenizer of a few words."""

import json
from pathlib import Path
from typing import Any

WORDS = [
    "the",
    "a",
    "bridge",
    "swarm",
    "hive",
    "cable",
    "rust",
    "onion",
    "soup",
    "in",
    "may",
    "was",
    "found",
    ",",
    ".",
    "##s",
    "##ed",
    "x",
    "b",
    "c",
    "d",
    "e",
    "f",
    "g",
    "h",
    "i",
]
SHAPE: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 66,
}


def make_model(folder: Path, kind: str = "bert", **files: Any) -> str:
    """Create a model folder; `files` are JSON files of sentence-transformers, by name without suffix."""
    import torch

    torch.manual_seed(7)
    words = _write_tokenizer(folder)
    model = _model(kind, len(words))
    for parameter in model.parameters():  # with default weights the vectors of all texts are nearly equal
        torch.nn.init.normal_(parameter, std=0.25)
    model.save_pretrained(folder)
    for name, content in files.items():
        path = folder / f"{name.replace('__', '/')}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
    return str(folder)


def modules(*kinds: str) -> list[dict[str, Any]]:
    """Return the content of `modules.json`; the first module is the transformer."""
    paths = ["", *(f"{number}_{kind}" for number, kind in enumerate(kinds[1:], 1))]
    return [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]


def _write_tokenizer(folder: Path) -> dict[str, int]:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = {word: number for number, word in enumerate([*special, *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    return words


def _model(kind: str, words: int) -> Any:
    import transformers as t

    shape = {**SHAPE, "vocab_size": words, "pad_token_id": 0}
    if kind == "distilbert":
        small = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 66}
        return t.DistilBertModel(t.DistilBertConfig(vocab_size=words, pad_token_id=0, **small))
    if kind == "mpnet":
        return t.MPNetModel(t.MPNetConfig(**{**shape, "pad_token_id": 1}), add_pooling_layer=False)
    kinds = {
        "bert": (t.BertModel, t.BertConfig),
        "roberta": (t.RobertaModel, t.RobertaConfig),
        "xlm-roberta": (t.XLMRobertaModel, t.XLMRobertaConfig),
        "electra": (t.ElectraModel, t.ElectraConfig),
    }
    model, config = kinds[kind]
    if kind == "electra":
        return model(config(**shape, embedding_size=32))
    return model(config(**shape))

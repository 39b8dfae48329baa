"""Tokenizers unlike BERT's, written into the folder of a BERT model."""

import json
from pathlib import Path

_TEXTS = ["the bridge was found in may", "a swarm in the hive", "onion soup and rust, cable."] * 5


def put_bare_tokenizer(folder: str | Path) -> str:
    """Byte pairs of a few letters: no special tokens, and no token for unknown characters."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    words = json.loads((Path(folder) / "config.json").read_text())["vocab_size"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=words, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    tokenizer.train_from_iterator(_TEXTS, trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]").save_pretrained(folder)
    return str(folder)


def put_larger_tokenizer(folder: str | Path) -> str:
    """The model's tokenizer with a word that the network has no row for."""
    file = Path(put_bare_tokenizer(folder)) / "tokenizer.json"
    content = json.loads(file.read_text())
    beyond = json.loads((Path(folder) / "config.json").read_text())["vocab_size"]
    added = {"id": beyond, "content": "zeppelin", "single_word": True, "lstrip": False, "rstrip": False}
    content["added_tokens"].append({**added, "normalized": False, "special": False})
    content["model"]["vocab"]["zeppelin"] = beyond
    file.write_text(json.dumps(content))
    return str(folder)

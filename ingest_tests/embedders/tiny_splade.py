"""A tiny masked-language model with random weights and its own WordPiece vocabulary."""

from pathlib import Path

TEXT = """bridge cable rust steel soup onion hour simmer water tower inspect repair river stone winter honey
hive bee swarm queen note the of and a in to it is was for smoke feed mite treat frame comb wax sugar"""
WORDS = TEXT.split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write_model(folder: Path) -> Path:
    """Create a complete model folder, as from a hub."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    letters = [*"abcdefghijklmnopqrstuvwxyz0123456789.,:;!?-"]
    entries = [*SPECIAL, *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {entry: number for number, entry in enumerate(dict.fromkeys(entries))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    roles = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    names = dict(zip(roles, SPECIAL, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.6,
    )
    BertForMaskedLM(config).eval().save_pretrained(folder)
    return folder

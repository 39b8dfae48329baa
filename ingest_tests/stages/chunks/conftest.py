"""Tokenizers of three kinds, and Docling's own chunker to compare with."""

import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from ingest_assets.embedders.model_files import load_tokenizer
from ingest_assets.settings.embeddings import PACKAGED_MODEL

TEXTS = [
    "The bridge was inspected in spring. Its cables, it's said, are in good order: see [1] and (2).",
    "Die Brücke wurde geprüft; naïve façades, coöperation and ﬁne ligatures. 東京の橋は長い。",
    "Prices: 1,234.50 € – 99% off! http://example.org/a_b?c=d&e=f#g\tTabs\nand lines\r\nof both kinds.",
] * 4


def _save(tokenizer: Any, folder: Path, **special: str) -> str:
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


def byte_pairs(folder: Path) -> str:
    """A byte-level BPE tokenizer like GPT-2's and RoBERTa's."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return _save(tokenizer, folder)


def sentence_pieces(folder: Path) -> str:
    """A Unigram tokenizer with Metaspace, like XLM-R's and T5's."""
    from tokenizers import (
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return _save(tokenizer, folder, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def cased(folder: Path) -> str:
    """A small WordPiece tokenizer that keeps case and accents, with unusual added tokens."""
    from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

    letters = [chr(code) for code in range(33, 127)]
    words = ["[UNK]", "The", "the", "bridge", "Bridge", "##s", "##ing", "é", "##é", "東"]
    vocabulary = dict.fromkeys([*words, *letters, *(f"##{letter}" for letter in letters)])
    tokenizer = Tokenizer(
        models.WordPiece(
            {word: at for at, word in enumerate(vocabulary)}, unk_token="[UNK]", max_input_chars_per_word=20
        )
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_tokens([AddedToken("idg", normalized=True), AddedToken("<x>", normalized=False)])
    return _save(tokenizer, folder, unk_token="[UNK]")


KINDS = {"bpe": byte_pairs, "unigram": sentence_pieces, "cased wordpiece": cased}


@functools.cache
def folder_of(kind: str) -> str:
    """The folder of a tokenizer, created once."""
    if kind == "packaged":
        return PACKAGED_MODEL
    return KINDS[kind](Path(tempfile.mkdtemp(prefix="tokenizer-")) / kind.replace(" ", "-"))


@functools.cache
def tokenizer_of(kind: str) -> Any:
    """A tokenizer of transformers, loaded once."""
    return load_tokenizer(folder_of(kind))


@pytest.fixture(params=["packaged", *KINDS])
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of tokenizer in turn."""
    return str(request.param)

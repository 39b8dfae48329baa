"""Networks and tokenizers of transformers, read from their folders: whole, or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ingest_assets.model.errors import ConfigError

_UNUSED = "pooler"  # vectors are made of what comes before it, and many files leave it out


def load_whole(kind: Any, path: str, setting: str, **options: Any) -> Any:
    """The network of a folder, offline; refuses one that lacks weights, which the library would make up."""
    with quiet():
        network, found = kind.from_pretrained(
            path,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # told below: the library's own words are a table
            **options,
        )
    missing = sorted(name for name in found["missing_keys"] if _UNUSED not in name.split("."))
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ConfigError(
            f"{setting}: the weights in {path} lack {missing[0]}{more}, which "
            f"{type(network).__name__} needs; give a complete model folder, or one that was trained for this."
        )
    for name, *shapes in sorted(found["mismatched_keys"], key=str):
        there, wanted = (" x ".join(map(str, shape)) for shape in shapes)
        raise ConfigError(
            f"{setting}: {name} is {there} in the weights of {path}, and {wanted} by its config.json; give a "
            "folder in which they are of one model."
        )
    return network


def load_words(path: str) -> Any:
    """The tokenizer of a folder, offline; without `False` the library would ask the terminal about code."""
    from transformers import AutoTokenizer

    return without_warnings(
        AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    )


def without_warnings(tokenizer: Any) -> Any:
    """The same; counting the tokens of a long text is no mistake, and transformers would warn about it."""
    if hasattr(tokenizer, "deprecation_warnings"):
        tokenizer.deprecation_warnings["sequence-length-is-longer-than-the-specified-maximum"] = True
    return tokenizer


@contextmanager
def quiet() -> Iterator[None]:
    """Its report of weights is a table on the terminal, and read here."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)

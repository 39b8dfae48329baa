"""Texts and questions with the spans of characters that answer them, as chunking_evaluation has them."""

import csv
import io
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from ingest_assets.evaluation.labelled.labelled_set import LabelledSet
from ingest_assets.evaluation.labelled.reading import is_text, read_text, read_unmarked
from ingest_assets.evaluation.passages import tokens_of
from ingest_assets.model.errors import ConfigError

_QUESTIONS = "questions_df.csv"
_COLUMNS = ("question", "references", "corpus_id")
_MOST_CHARS = 2**31 - 1  # of a field; else Python takes 128 KiB for a slip

Row = dict[str, str]


def read_spans(folder: Path) -> LabelledSet:
    """The set from its questions and the Markdown texts beside them; spans must hold what they say."""
    texts: dict[str, str] = {}
    queries: dict[str, str] = {}
    spans: dict[str, tuple[str, list[tuple[int, int]]]] = {}
    for number, (where, row) in enumerate(_rows(folder / _QUESTIONS), start=1):
        name = unicodedata.normalize("NFC", f"{row['corpus_id']}.md")
        if name not in texts:
            texts[name] = read_text(folder / f"{row['corpus_id']}.md")
        query = f"{row['corpus_id']}/{number}"
        queries[query] = row["question"]
        spans[query] = (name, _spans(row["references"], texts[name], f"{where}, question {number}"))
    if not queries:
        raise ConfigError(f"{folder / _QUESTIONS}: holds no question below its columns.")
    relevant = {query: {name: 1.0} for query, (name, _) in spans.items()}
    return LabelledSet("spans", queries, relevant, texts=texts, spans=spans)


def _rows(file: Path) -> Iterator[tuple[str, Row]]:
    """Every question with where it ends in the file."""
    csv.field_size_limit(_MOST_CHARS)
    reader = csv.DictReader(io.StringIO(read_unmarked(file), newline=""))
    try:
        if not set(_COLUMNS) <= set(reader.fieldnames or ()):
            raise ConfigError(f"{file}: should have the columns {', '.join(_COLUMNS)}.")
        for row in reader:
            where = f"{file}: line {reader.line_num}"
            _require_whole(row, where)
            yield where, row
    except csv.Error as error:
        raise ConfigError(f"{file}: line {reader.line_num} cannot be read ({error}).") from None


def _require_whole(row: Row, where: str) -> None:
    for column in _COLUMNS:
        if not is_text(row[column]):
            raise ConfigError(f"{where}: has no {column}.")
    corpus = row["corpus_id"]
    if corpus in (".", "..") or corpus != PurePath(corpus).name or not corpus.isprintable():
        raise ConfigError(f"{where}: corpus_id {corpus!r} should be a file's name without .md, and no path.")


def _spans(references: str, text: str, where: str) -> list[tuple[int, int]]:
    try:
        found = [_span(reference, text, where) for reference in json.loads(references)]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ConfigError(f"{where}: its references cannot be read ({error!r:.200}).") from None
    if not found:
        raise ConfigError(f"{where}: has no references, so nothing could be found for it.")
    return found


def _span(reference: dict[str, Any], text: str, where: str) -> tuple[int, int]:
    start, end = int(reference["start_index"]), int(reference["end_index"])
    if not 0 <= start < end or text[start:end] != reference["content"]:
        raise ConfigError(f"{where}: characters {start} to {end} are not what the question says they are.")
    if not tokens_of(text[start:end]).words:
        raise ConfigError(f"{where}: characters {start} to {end} are blank, so nothing could be found there.")
    return start, end

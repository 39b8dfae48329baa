"""Texts and questions with the spans of characters that answer them, as chunking_evaluation has them."""

import csv
import io
import json
from pathlib import Path
from typing import Any

from ingest_assets.evaluation.labelled.labelled_set import LabelledSet
from ingest_assets.evaluation.labelled.reading import read_text, read_unmarked
from ingest_assets.model.errors import ConfigError

_QUESTIONS = "questions_df.csv"


def read_spans(folder: Path) -> LabelledSet:
    """The set from its questions and the Markdown texts beside them; spans must hold what they say."""
    file = folder / _QUESTIONS
    rows = list(csv.DictReader(io.StringIO(read_unmarked(file), newline="")))
    if not rows or not {"question", "references", "corpus_id"} <= rows[0].keys():
        raise ConfigError(f"{file}: should have the columns question, references and corpus_id.")
    names = {row["corpus_id"]: f"{row['corpus_id']}.md" for row in rows}
    texts = {name: read_text(folder / name) for name in names.values()}
    queries, spans = {}, {}
    for number, row in enumerate(rows, start=1):
        name = names[row["corpus_id"]]
        query = f"{row['corpus_id']}/{number}"
        queries[query] = row["question"]
        spans[query] = (name, _spans(row["references"], texts[name], f"{file}: question {number}"))
    relevant = {query: {name: 1.0} for query, (name, _) in spans.items()}
    return LabelledSet("spans", queries, relevant, texts=texts, spans=spans)


def _spans(references: str, text: str, where: str) -> list[tuple[int, int]]:
    try:
        return [_span(reference, text, where) for reference in json.loads(references)]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{where}: its references cannot be read ({error!r}).") from None


def _span(reference: dict[str, Any], text: str, where: str) -> tuple[int, int]:
    start, end = int(reference["start_index"]), int(reference["end_index"])
    if text[start:end] != reference["content"]:
        raise ConfigError(f"{where}: characters {start} to {end} are not what the question says they are.")
    return start, end

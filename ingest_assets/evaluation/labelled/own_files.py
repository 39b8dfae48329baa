"""A labelled set of one's own: a folder with queries.jsonl, qrels.tsv and documents/."""

import json
import unicodedata
from collections import defaultdict
from pathlib import Path

from ingest_assets.evaluation.labelled.labelled_set import LabelledSet, relevant_only
from ingest_assets.evaluation.labelled.reading import read_lines
from ingest_assets.model.errors import ConfigError


def read_own_files(folder: Path, name: str = "files") -> LabelledSet:
    """The set; refuses judgements of queries or documents that are not there, for those are slips."""
    queries = _queries(folder / "queries.jsonl")
    documents = folder / "documents"
    if not documents.is_dir():
        raise ConfigError(f"{documents}: is no folder; the documents of the set belong there.")
    grades = _grades(folder / "qrels.tsv", queries, documents)
    relevant = relevant_only(grades)
    if not relevant:
        raise ConfigError(f"{folder / 'qrels.tsv'}: finds no document relevant; give grades above 0.")
    return LabelledSet(name, queries, relevant, folder=documents)


def _queries(path: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    for number, line in read_lines(path):
        try:
            row = json.loads(line)
            query, text = str(row["id"] if "id" in row else row["_id"]), row["text"]
        except (ValueError, KeyError, TypeError):
            raise ConfigError(f'{path}: line {number} should be {{"id": "…", "text": "…"}}.') from None
        if not isinstance(text, str) or not text.strip() or query in queries:
            raise ConfigError(f"{path}: line {number}: query {query!r} has no text, or is there twice.")
        queries[query] = text
    return queries


def _grades(path: Path, queries: dict[str, str], documents: Path) -> dict[str, dict[str, float]]:
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    for number, line in read_lines(path):
        fields = [field.strip() for field in line.split("\t")]
        grade = _number(fields[2]) if len(fields) == 3 else None
        if grade is None and number == 1 and len(fields) == 3:
            continue  # a heading
        if grade is None:
            raise ConfigError(f"{path}: line {number} should be query, document and grade, by tabs.")
        query, document = fields[0], unicodedata.normalize("NFC", fields[1])
        if query not in queries:
            raise ConfigError(f"{path}: line {number}: there is no query {query!r} in queries.jsonl.")
        if not (documents / fields[1]).is_file():
            raise ConfigError(f"{path}: line {number}: there is no document {fields[1]!r} in {documents}.")
        grades[query][document] = grade
    return grades


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

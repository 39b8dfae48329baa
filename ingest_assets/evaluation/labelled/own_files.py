"""A labelled set of one's own: a folder with queries.jsonl, qrels.tsv and documents/."""

import json
import math
import posixpath
import unicodedata
from collections import defaultdict
from collections.abc import Container
from pathlib import Path

from ingest_assets.evaluation.labelled.labelled_set import LabelledSet, relevant_only
from ingest_assets.evaluation.labelled.reading import is_text, read_lines
from ingest_assets.model.errors import ConfigError


def read_own_files(folder: Path, name: str = "files") -> LabelledSet:
    """The set; refuses judgements of queries or documents that are not there, or said twice: slips."""
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
        query, text = _query(line, f"{path}: line {number}")
        if query in queries:
            raise ConfigError(f"{path}: line {number}: query {query!r} is there twice.")
        queries[query] = text
    if not queries:
        raise ConfigError(f"{path}: holds no query; give a line for each.")
    return queries


def _query(line: str, where: str) -> tuple[str, str]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    query = row.get("id", row.get("_id")) if isinstance(row, dict) else None
    if not isinstance(row, dict) or not (type(query) is int or is_text(query)) or "text" not in row:
        raise ConfigError(f'{where} should be {{"id": "…", "text": "…"}}.')
    if not is_text(row["text"]):
        raise ConfigError(f"{where}: query {str(query)!r} has no text, or one that is no text.")
    return str(query), row["text"]


def _grades(path: Path, queries: Container[str], documents: Path) -> dict[str, dict[str, float]]:
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    names = _names(documents)
    for number, line in read_lines(path):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 3:
            raise ConfigError(f"{path}: line {number} should be query, document and grade, by tabs.")
        query, document, grade = fields[0], _normal(fields[1]), _number(fields[2])
        if number == 1 and grade is None and query not in queries and document not in names:
            continue  # a heading
        if query not in queries:
            raise ConfigError(f"{path}: line {number}: there is no query {query!r} in queries.jsonl.")
        if document not in names:
            raise ConfigError(f"{path}: line {number}: there is no document {fields[1]!r} in {documents}.")
        if grade is None or not math.isfinite(grade):
            raise ConfigError(f"{path}: line {number}: the grade should be a number; got {fields[2]!r}.")
        if document in grades[query]:
            raise ConfigError(f"{path}: line {number}: {document!r} is there twice for query {query!r}.")
        grades[query][document] = grade
    return grades


def _names(documents: Path) -> set[str]:
    """The documents, by paths as ids have them."""
    files = (path for path in documents.rglob("*") if path.is_file())
    return {_normal(path.relative_to(documents).as_posix()) for path in files}


def _normal(path: str) -> str:
    """As ids have it: one way to write each path."""
    return posixpath.normpath(unicodedata.normalize("NFC", path))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

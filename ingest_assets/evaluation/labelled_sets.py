"""Labelled sets: documents, queries, and the documents or passages that answer each query."""

import csv
import io
import json
import math
import posixpath
import re
import unicodedata
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from ingest_assets.core.errors import ConfigError
from ingest_assets.evaluation.retrieval import Gains, tokens_of


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Documents (a folder, or texts by file name), queries, and the relevant documents of each query.

    `graded` has other gains for a second nDCG. `spans` maps a query to a document and to the characters that
    answer it. `missing` lists documents of the set without text.
    """

    name: str
    queries: Mapping[str, str]
    relevant: Gains
    folder: Path | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    graded: Gains | None = None
    spans: Mapping[str, tuple[str, Sequence[tuple[int, int]]]] = field(default_factory=dict)
    missing: Sequence[str] = ()


def relevant_only(gains: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return the gains above 0, without queries that have no relevant document."""
    positive = {query: {doc: gain for doc, gain in docs.items() if gain > 0} for query, docs in gains.items()}
    return {query: docs for query, docs in positive.items() if docs}


_SURROGATE = re.compile("[\ud800-\udfff]")


def read_text(path: Path) -> str:
    """Return a file's text with its line ends unchanged, because spans count them."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}). Check the set's folder.") from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}: line {line} is not UTF-8 ({error.reason} at byte {error.start}). Save it as UTF-8."
        ) from None


def read_without_bom(path: Path) -> str:
    """Return a file's text without the byte order mark that Windows programs write."""
    return read_text(path).removeprefix("\ufeff")


def is_text(value: object) -> bool:
    """True for a string that is not blank and has no lone surrogates, which cannot be stored."""
    return isinstance(value, str) and bool(value.strip()) and not _SURROGATE.search(value)


def read_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines that are not blank, with their numbers. Only a newline ends a line."""
    lines = read_without_bom(path).split("\n")
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


# The Cranfield collection: 1,400 abstracts and 225 queries with relevance judgements.
#
# Grades 1 to 4 are relevant, 1 the most. `ndcg@10` gives each of them the same gain: of the conventions
# tried, this one reproduces the project's reference figures. `ndcg_graded@10` gives grade 1 four points and
# grade 4 one. Grade -1 occurs once per query; the collection does not explain it, so it is not relevant.

_RECORD = re.compile(r"^\.I\s+(\d{1,9})\s*$", re.MULTILINE | re.ASCII)
_INTEGER = re.compile(r"-?\d{1,9}", re.ASCII)
_FIELD = re.compile(r"^\.([A-Z])\s*$", re.MULTILINE)
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def read_cranfield(folder: Path) -> LabelledSet:
    """Read the set from its files `cran.all.1400`, `cran.qry` and `cranqrel`."""
    papers = _papers(folder / "cran.all.1400")
    texts = {name: _paper_markdown(fields) for name, fields in papers.items() if fields.get("W", "").strip()}
    if not texts:
        raise ConfigError(f"{folder / 'cran.all.1400'}: no record has text. Use the original Cranfield file.")
    queries = _cranfield_queries(folder / "cran.qry")
    grades = _cranfield_grades(folder / "cranqrel", queries, papers)
    relevant = _cranfield_gains(grades, {1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0})
    if not relevant:
        raise ConfigError(f"{folder / 'cranqrel'}: no document is relevant. Use the original Cranfield file.")
    return LabelledSet(
        name="cranfield",
        queries=queries,
        relevant=relevant,
        graded=_cranfield_gains(grades, {1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0}),
        texts=texts,
        missing=[name for name in papers if name not in texts],
    )


def file_name(number: int) -> str:
    """Return the name of the file that a paper is written to."""
    return f"{number:04}.md"


def _cranfield_gains(grades: Mapping[str, Mapping[str, int]], gain_of: Mapping[int, float]) -> Gains:
    gains = {q: {doc: gain_of.get(grade, 0.0) for doc, grade in docs.items()} for q, docs in grades.items()}
    return relevant_only(gains)


def _papers(path: Path) -> dict[str, dict[str, str]]:
    """Return the fields of each paper by file name."""
    papers: dict[str, dict[str, str]] = {}
    for line, number, fields in _cranfield_records(path):
        if file_name(number) in papers:
            raise ConfigError(f"{path}: line {line}: duplicate record {number}.")
        papers[file_name(number)] = fields
    return papers


def _cranfield_queries(path: Path) -> dict[str, str]:
    """Return the queries' texts by position: judgements refer to a query's position, not to its number."""
    queries: dict[str, str] = {}
    for place, (line, _, fields) in enumerate(_cranfield_records(path), start=1):
        queries[str(place)] = " ".join(fields.get("W", "").split())
        if not queries[str(place)]:
            raise ConfigError(f"{path}: line {line}: query {place} has no text.")
    return queries


def _cranfield_records(path: Path) -> list[tuple[int, int, dict[str, str]]]:
    """Return the records in file order: line, number and fields."""
    text = read_without_bom(path)
    heads = list(_RECORD.finditer(text))
    if not heads:
        raise ConfigError(f"{path}: no record begins with `.I`. Use the original Cranfield file.")
    ends = [*(head.start() for head in heads[1:]), len(text)]
    records = []
    for head, end in zip(heads, ends, strict=True):
        parts = _FIELD.split(text[head.end() : end])
        fields = dict(zip(parts[1::2], parts[2::2], strict=True))
        records.append((text.count("\n", 0, head.start()) + 1, int(head[1]), fields))
    return records


def _paper_markdown(fields: dict[str, str]) -> str:
    """Return a paper as Markdown: its title as heading, its text as paragraphs with escaped markup."""
    title = " ".join(fields.get("T", "").split())
    blocks = [f"# {title}"] if title else []
    for part in re.split(r"\n(?= )", fields["W"]):
        if text := " ".join(part.split()):
            escaped = _MARKUP.sub(r"\\\1", text)
            blocks.append(re.sub(r"^(\d+|)([.)+=-])", r"\1\\\2", escaped))  # neither list nor rule
    return "\n\n".join(blocks) + "\n"


def _cranfield_grades(
    path: Path, queries: Container[str], papers: Container[str]
) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for number, line in read_lines(path):
        fields = line.split()
        if len(fields) != 3 or not all(map(_INTEGER.fullmatch, fields)):
            raise ConfigError(f"{path}: line {number} must have three numbers: query, document, grade.")
        query, document, grade = map(int, fields)
        if str(query) not in queries:
            raise ConfigError(f"{path}: line {number}: cran.qry has no query {query}.")
        if file_name(document) not in papers:
            raise ConfigError(f"{path}: line {number}: cran.all.1400 has no document {document}.")
        grades[str(query)][file_name(document)] = grade
    return grades


# A user's labelled set: a folder with queries.jsonl, qrels.tsv and documents/.


def read_labelled_folder(folder: Path, name: str = "files") -> LabelledSet:
    """Read the set. Reject duplicate judgements and judgements of unknown queries or documents."""
    queries = _folder_queries(folder / "queries.jsonl")
    documents = folder / "documents"
    if not documents.is_dir():
        raise ConfigError(f"{documents} is not a folder. Put the set's documents there.")
    grades = _folder_grades(folder / "qrels.tsv", queries, documents)
    relevant = relevant_only(grades)
    if not relevant:
        raise ConfigError(f"{folder / 'qrels.tsv'}: no document is relevant. Add grades above 0.")
    return LabelledSet(name, queries, relevant, folder=documents)


def _folder_queries(path: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    for number, line in read_lines(path):
        query, text = _folder_query(line, f"{path}: line {number}")
        if query in queries:
            raise ConfigError(f"{path}: line {number}: duplicate query {query!r}.")
        queries[query] = text
    if not queries:
        raise ConfigError(f"{path} has no queries. Write one per line.")
    return queries


def _folder_query(line: str, where: str) -> tuple[str, str]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    query = row.get("id", row.get("_id")) if isinstance(row, dict) else None
    if not isinstance(row, dict) or not (type(query) is int or is_text(query)) or "text" not in row:
        raise ConfigError(f'{where} must be {{"id": "…", "text": "…"}}.')
    if not is_text(row["text"]):
        raise ConfigError(f"{where}: the text of query {str(query)!r} is empty or invalid.")
    return str(query), row["text"]


def _folder_grades(path: Path, queries: Container[str], documents: Path) -> dict[str, dict[str, float]]:
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    files = (path for path in documents.rglob("*") if path.is_file())
    names = {_normal(path.relative_to(documents).as_posix()) for path in files}
    for number, line in read_lines(path):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 3:
            raise ConfigError(f"{path}: line {number} must be query, document and grade, separated by tabs.")
        query, document, grade = fields[0], _normal(fields[1]), _number(fields[2])
        if number == 1 and grade is None and query not in queries and document not in names:
            continue  # the header row
        if query not in queries:
            raise ConfigError(f"{path}: line {number}: queries.jsonl has no query {query!r}.")
        if document not in names:
            raise ConfigError(f"{path}: line {number}: {documents} has no document {fields[1]!r}.")
        if grade is None or not math.isfinite(grade):
            raise ConfigError(f"{path}: line {number}: the grade must be a number; got {fields[2]!r}.")
        if document in grades[query]:
            raise ConfigError(f"{path}: line {number}: duplicate document {document!r} for query {query!r}.")
        grades[query][document] = grade
    return grades


def _normal(path: str) -> str:
    """Return the path in the form that document ids have."""
    return posixpath.normpath(unicodedata.normalize("NFC", path))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# Texts, and questions with the spans of characters that answer them, in the format of chunking_evaluation.

_QUESTIONS = "questions_df.csv"
_COLUMNS = ("question", "references", "corpus_id")
_MAX_FIELD_CHARS = 2**31 - 1  # of a field; Python's default limit is 128 KiB

Row = dict[str, str]


def read_spans(folder: Path) -> LabelledSet:
    """Read the set from its questions and the Markdown texts next to them. Spans must match their content."""
    texts: dict[str, str] = {}
    queries: dict[str, str] = {}
    spans: dict[str, tuple[str, list[tuple[int, int]]]] = {}
    for number, (where, row) in enumerate(_question_rows(folder / _QUESTIONS), start=1):
        name = unicodedata.normalize("NFC", f"{row['corpus_id']}.md")
        if name not in texts:
            texts[name] = read_text(folder / f"{row['corpus_id']}.md")
        query = f"{row['corpus_id']}/{number}"
        queries[query] = row["question"]
        spans[query] = (name, _spans(row["references"], texts[name], f"{where}, question {number}"))
    if not queries:
        raise ConfigError(f"{folder / _QUESTIONS} has no questions.")
    relevant = {query: {name: 1.0} for query, (name, _) in spans.items()}
    return LabelledSet("spans", queries, relevant, texts=texts, spans=spans)


def _question_rows(file: Path) -> Iterator[tuple[str, Row]]:
    """Yield every question with its last line in the file."""
    csv.field_size_limit(_MAX_FIELD_CHARS)
    reader = csv.DictReader(io.StringIO(read_without_bom(file), newline=""))
    try:
        if not set(_COLUMNS) <= set(reader.fieldnames or ()):
            raise ConfigError(f"{file} must have the columns {', '.join(_COLUMNS)}.")
        for row in reader:
            where = f"{file}: line {reader.line_num}"
            _require_valid(row, where)
            yield where, row
    except csv.Error as error:
        raise ConfigError(f"{file}: line {reader.line_num} cannot be read ({error}).") from None


def _require_valid(row: Row, where: str) -> None:
    for column in _COLUMNS:
        if not is_text(row[column]):
            raise ConfigError(f"{where}: {column} is missing.")
    corpus = row["corpus_id"]
    if corpus in (".", "..") or corpus != PurePath(corpus).name or not corpus.isprintable():
        raise ConfigError(f"{where}: corpus_id {corpus!r} must be a file name without folder and .md.")


def _spans(references: str, text: str, where: str) -> list[tuple[int, int]]:
    try:
        spans = [_span(reference, text, where) for reference in json.loads(references)]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ConfigError(f"{where}: invalid references ({error!r:.200}).") from None
    if not spans:
        raise ConfigError(f"{where}: references are empty.")
    return spans


def _span(reference: dict[str, Any], text: str, where: str) -> tuple[int, int]:
    start, end = int(reference["start_index"]), int(reference["end_index"])
    if not 0 <= start < end or text[start:end] != reference["content"]:
        raise ConfigError(f"{where}: characters {start} to {end} differ from the reference's content.")
    if not tokens_of(text[start:end]).words:
        raise ConfigError(f"{where}: characters {start} to {end} are blank.")
    return start, end

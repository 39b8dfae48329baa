"""Labelled sets: documents, queries and what each query should find."""

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
    """Documents as a folder or as texts by file name; queries; and what they should find.

    `graded` are other gains for a second nDCG. `spans` say in which document and where in its text a query is
    answered. `missing` are documents of the set that have no text.
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
    """Without gains of nothing, and without queries for which nothing is relevant."""
    kept = {query: {doc: gain for doc, gain in found.items() if gain > 0} for query, found in gains.items()}
    return {query: found for query, found in kept.items() if found}


_SURROGATE = re.compile("[\ud800-\udfff]")


def read_text(path: Path) -> str:
    """The text of a file, its line ends as they are; spans count them."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); give the set's folder.") from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}: line {line} is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8."
        ) from None


def read_unmarked(path: Path) -> str:
    """The text of a file without the byte order mark that Windows puts before it."""
    return read_text(path).removeprefix("\ufeff")


def is_text(given: object) -> bool:
    """True for a string that holds something and can be stored: half a character cannot."""
    return isinstance(given, str) and bool(given.strip()) and not _SURROGATE.search(given)


def read_lines(path: Path) -> list[tuple[int, str]]:
    """Lines that hold something, with their numbers. Other ends than newlines are part of a text."""
    lines = read_unmarked(path).split("\n")
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


# The Cranfield collection: 1,400 abstracts, 225 queries, judged.
#
# Grades 1 to 4 are relevant, 1 the most. `ndcg@10` counts each of them the same; `ndcg_graded@10` gives
# grade 1 four points, grade 4 one. Of the conventions tried, the former gave, on whole abstracts, the
# figures of our field notes, which name none. Grade -1 stands once per query; the readme does not explain
# it, it counts as not relevant.

_RECORD = re.compile(r"^\.I\s+(\d{1,9})\s*$", re.MULTILINE | re.ASCII)
_INTEGER = re.compile(r"-?\d{1,9}", re.ASCII)
_FIELD = re.compile(r"^\.([A-Z])\s*$", re.MULTILINE)
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def read_cranfield(folder: Path) -> LabelledSet:
    """The set from its files `cran.all.1400`, `cran.qry` and `cranqrel`."""
    papers = _papers(folder / "cran.all.1400")
    texts = {name: _paper_markdown(fields) for name, fields in papers.items() if fields.get("W", "").strip()}
    if not texts:
        raise ConfigError(f"{folder / 'cran.all.1400'}: no record has a text; give Cranfield's own file.")
    queries = _cranfield_queries(folder / "cran.qry")
    grades = _cranfield_grades(folder / "cranqrel", queries, papers)
    relevant = _cranfield_gains(grades, {1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0})
    if not relevant:
        raise ConfigError(f"{folder / 'cranqrel'}: finds no document relevant; give Cranfield's own file.")
    return LabelledSet(
        name="cranfield",
        queries=queries,
        relevant=relevant,
        graded=_cranfield_gains(grades, {1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0}),
        texts=texts,
        missing=[name for name in papers if name not in texts],
    )


def file_name(number: int) -> str:
    """The file that a paper is written to."""
    return f"{number:04}.md"


def _cranfield_gains(grades: Mapping[str, Mapping[str, int]], gain_of: Mapping[int, float]) -> Gains:
    gains = {q: {doc: gain_of.get(grade, 0.0) for doc, grade in found.items()} for q, found in grades.items()}
    return relevant_only(gains)


def _papers(path: Path) -> dict[str, dict[str, str]]:
    """The fields of each paper, by the name of its file."""
    papers: dict[str, dict[str, str]] = {}
    for line, number, fields in _cranfield_records(path):
        if file_name(number) in papers:
            raise ConfigError(f"{path}: line {line}: record {number} is there twice.")
        papers[file_name(number)] = fields
    return papers


def _cranfield_queries(path: Path) -> dict[str, str]:
    """Their texts. Judgements name queries by their place in the file, not by their number."""
    queries: dict[str, str] = {}
    for place, (line, _, fields) in enumerate(_cranfield_records(path), start=1):
        queries[str(place)] = " ".join(fields.get("W", "").split())
        if not queries[str(place)]:
            raise ConfigError(f"{path}: line {line}: query {place} has no text.")
    return queries


def _cranfield_records(path: Path) -> list[tuple[int, int, dict[str, str]]]:
    """Records in file order: the line where each begins, its number, its fields."""
    text = read_unmarked(path)
    heads = list(_RECORD.finditer(text))
    if not heads:
        raise ConfigError(f"{path}: holds no record that begins with `.I`; give Cranfield's own file.")
    ends = [*(head.start() for head in heads[1:]), len(text)]
    records = []
    for head, end in zip(heads, ends, strict=True):
        parts = _FIELD.split(text[head.end() : end])
        fields = dict(zip(parts[1::2], parts[2::2], strict=True))
        records.append((text.count("\n", 0, head.start()) + 1, int(head[1]), fields))
    return records


def _paper_markdown(fields: dict[str, str]) -> str:
    """A paper as a document: its title as the heading, its text as paragraphs; nothing in it is markup."""
    title = " ".join(fields.get("T", "").split())
    blocks = [f"# {title}"] if title else []
    for part in re.split(r"\n(?= )", fields["W"]):
        if text := " ".join(part.split()):
            escaped = _MARKUP.sub(r"\\\1", text)
            blocks.append(re.sub(r"^(\d+|)([.)+=-])", r"\1\\\2", escaped))  # no list, no rule
    return "\n\n".join(blocks) + "\n"


def _cranfield_grades(
    path: Path, queries: Container[str], papers: Container[str]
) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for number, line in read_lines(path):
        fields = line.split()
        if len(fields) != 3 or not all(map(_INTEGER.fullmatch, fields)):
            raise ConfigError(f"{path}: line {number} should be three numbers: query, document, grade.")
        query, document, grade = map(int, fields)
        if str(query) not in queries:
            raise ConfigError(f"{path}: line {number}: there is no query {query} in cran.qry.")
        if file_name(document) not in papers:
            raise ConfigError(f"{path}: line {number}: there is no document {document} in cran.all.1400.")
        grades[str(query)][file_name(document)] = grade
    return grades


# A labelled set of one's own: a folder with queries.jsonl, qrels.tsv and documents/.


def read_own_files(folder: Path, name: str = "files") -> LabelledSet:
    """The set; refuses judgements of queries or documents that are not there, or said twice: slips."""
    queries = _own_queries(folder / "queries.jsonl")
    documents = folder / "documents"
    if not documents.is_dir():
        raise ConfigError(f"{documents}: is no folder; the documents of the set belong there.")
    grades = _own_grades(folder / "qrels.tsv", queries, documents)
    relevant = relevant_only(grades)
    if not relevant:
        raise ConfigError(f"{folder / 'qrels.tsv'}: finds no document relevant; give grades above 0.")
    return LabelledSet(name, queries, relevant, folder=documents)


def _own_queries(path: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    for number, line in read_lines(path):
        query, text = _own_query(line, f"{path}: line {number}")
        if query in queries:
            raise ConfigError(f"{path}: line {number}: query {query!r} is there twice.")
        queries[query] = text
    if not queries:
        raise ConfigError(f"{path}: holds no query; give a line for each.")
    return queries


def _own_query(line: str, where: str) -> tuple[str, str]:
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


def _own_grades(path: Path, queries: Container[str], documents: Path) -> dict[str, dict[str, float]]:
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    files = (path for path in documents.rglob("*") if path.is_file())
    names = {_normal(path.relative_to(documents).as_posix()) for path in files}
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


def _normal(path: str) -> str:
    """As ids have it: one way to write each path."""
    return posixpath.normpath(unicodedata.normalize("NFC", path))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# Texts and questions with the spans of characters that answer them, as chunking_evaluation has them.

_QUESTIONS = "questions_df.csv"
_COLUMNS = ("question", "references", "corpus_id")
_MOST_CHARS = 2**31 - 1  # of a field; else Python takes 128 KiB for a slip

Row = dict[str, str]


def read_spans(folder: Path) -> LabelledSet:
    """The set from its questions and the Markdown texts beside them; spans must hold what they say."""
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
        raise ConfigError(f"{folder / _QUESTIONS}: holds no question below its columns.")
    relevant = {query: {name: 1.0} for query, (name, _) in spans.items()}
    return LabelledSet("spans", queries, relevant, texts=texts, spans=spans)


def _question_rows(file: Path) -> Iterator[tuple[str, Row]]:
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

"""The Cranfield collection: 1,400 abstracts, 225 queries, judged.

Grades 1 to 4 are relevant, 1 the most. `ndcg@10` counts each of them the same; `ndcg_graded@10` gives grade 1
four points, grade 4 one. Of the conventions tried, the former gave, on whole abstracts, the figures of our
field notes, which name none. Grade -1 stands once per query; the readme does not explain it, it counts
as not relevant.
"""

import re
from collections import defaultdict
from collections.abc import Container, Mapping
from pathlib import Path

from ingest_assets.evaluation.labelled.labelled_set import Gains, LabelledSet, relevant_only
from ingest_assets.evaluation.labelled.reading import read_lines, read_unmarked
from ingest_assets.model.errors import ConfigError

_RECORD = re.compile(r"^\.I\s+(\d{1,9})\s*$", re.MULTILINE | re.ASCII)
_NUMBER = re.compile(r"-?\d{1,9}", re.ASCII)
_FIELD = re.compile(r"^\.([A-Z])\s*$", re.MULTILINE)
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def read_cranfield(folder: Path) -> LabelledSet:
    """The set from its files `cran.all.1400`, `cran.qry` and `cranqrel`."""
    papers = _papers(folder / "cran.all.1400")
    texts = {name: _markdown(fields) for name, fields in papers.items() if fields.get("W", "").strip()}
    if not texts:
        raise ConfigError(f"{folder / 'cran.all.1400'}: no record has a text; give Cranfield's own file.")
    queries = _queries(folder / "cran.qry")
    grades = _grades(folder / "cranqrel", queries, papers)
    relevant = _gains(grades, {1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0})
    if not relevant:
        raise ConfigError(f"{folder / 'cranqrel'}: finds no document relevant; give Cranfield's own file.")
    return LabelledSet(
        name="cranfield",
        queries=queries,
        relevant=relevant,
        graded=_gains(grades, {1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0}),
        texts=texts,
        missing=[name for name in papers if name not in texts],
    )


def file_name(number: int) -> str:
    """The file that a paper is written to."""
    return f"{number:04}.md"


def _gains(grades: Mapping[str, Mapping[str, int]], gain_of: Mapping[int, float]) -> Gains:
    gains = {q: {doc: gain_of.get(grade, 0.0) for doc, grade in found.items()} for q, found in grades.items()}
    return relevant_only(gains)


def _papers(path: Path) -> dict[str, dict[str, str]]:
    """The fields of each paper, by the name of its file."""
    papers: dict[str, dict[str, str]] = {}
    for line, number, fields in _records(path):
        if file_name(number) in papers:
            raise ConfigError(f"{path}: line {line}: record {number} is there twice.")
        papers[file_name(number)] = fields
    return papers


def _queries(path: Path) -> dict[str, str]:
    """Their texts. Judgements name queries by their place in the file, not by their number."""
    queries: dict[str, str] = {}
    for place, (line, _, fields) in enumerate(_records(path), start=1):
        queries[str(place)] = " ".join(fields.get("W", "").split())
        if not queries[str(place)]:
            raise ConfigError(f"{path}: line {line}: query {place} has no text.")
    return queries


def _records(path: Path) -> list[tuple[int, int, dict[str, str]]]:
    """Records in file order: the line where each begins, its number, its fields."""
    text = read_unmarked(path)
    heads = list(_RECORD.finditer(text))
    if not heads:
        raise ConfigError(f"{path}: holds no record that begins with `.I`; give Cranfield's own file.")
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [
        (text.count("\n", 0, head.start()) + 1, int(head[1]), _fields(text[head.end() : end]))
        for head, end in zip(heads, ends, strict=True)
    ]


def _fields(body: str) -> dict[str, str]:
    parts = _FIELD.split(body)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _markdown(fields: dict[str, str]) -> str:
    """A paper as a document: its title as the heading, its text as paragraphs; nothing in it is markup."""
    title = " ".join(fields.get("T", "").split())
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n(?= )", fields["W"])]
    blocks = [f"# {title}"] if title else []
    return "\n\n".join([*blocks, *(_plain(text) for text in paragraphs if text)]) + "\n"


def _plain(text: str) -> str:
    escaped = _MARKUP.sub(r"\\\1", text)
    return re.sub(r"^(\d+|)([.)+=-])", r"\1\\\2", escaped)  # no list, no rule


def _grades(path: Path, queries: Container[str], papers: Container[str]) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for number, line in read_lines(path):
        fields = line.split()
        if len(fields) != 3 or not all(map(_NUMBER.fullmatch, fields)):
            raise ConfigError(f"{path}: line {number} should be three numbers: query, document, grade.")
        query, document, grade = map(int, fields)
        if str(query) not in queries:
            raise ConfigError(f"{path}: line {number}: there is no query {query} in cran.qry.")
        if file_name(document) not in papers:
            raise ConfigError(f"{path}: line {number}: there is no document {document} in cran.all.1400.")
        grades[str(query)][file_name(document)] = grade
    return grades

"""The Cranfield collection: 1,400 abstracts, 225 queries, judged.

Grades 1 to 4 are relevant, 1 the most. `ndcg@10` counts each of them the same; `ndcg_graded@10` gives grade 1
four points, grade 4 one. Of the conventions tried, the former gave, on whole abstracts, the figures of our
field notes, which name none. Grade -1 stands once per query; the readme does not explain it, it counts
as not relevant.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from ingest_assets.evaluation.labelled.labelled_set import Gains, LabelledSet, relevant_only
from ingest_assets.evaluation.labelled.reading import read_lines, read_unmarked
from ingest_assets.model.errors import ConfigError

_RECORD = re.compile(r"^\.I\s+(\d+)\s*$", re.MULTILINE)
_FIELD = re.compile(r"^\.([A-Z])\s*$", re.MULTILINE)
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def read_cranfield(folder: Path) -> LabelledSet:
    """The set from its files `cran.all.1400`, `cran.qry` and `cranqrel`."""
    papers = _records(folder / "cran.all.1400")
    texts = {file_name(number): _markdown(fields) for number, fields in papers if fields.get("W", "").strip()}
    # Judgements name queries by their place in the file, not by their number.
    queries = {
        str(place): " ".join(fields.get("W", "").split())
        for place, (_, fields) in enumerate(_records(folder / "cran.qry"), start=1)
    }
    grades = _grades(folder / "cranqrel")
    if unknown := sorted(grades.keys() - queries.keys(), key=int):
        raise ConfigError(f"{folder / 'cranqrel'}: judges query {unknown[0]}, and there is no such query.")
    return LabelledSet(
        name="cranfield",
        queries=queries,
        relevant=_gains(grades, {1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}),
        graded=_gains(grades, {1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0}),
        texts=texts,
        missing=[file_name(number) for number, _ in papers if file_name(number) not in texts],
    )


def file_name(number: int) -> str:
    """The file that a paper is written to."""
    return f"{number:04}.md"


def _gains(grades: Mapping[str, Mapping[str, int]], gain_of: Mapping[int, float]) -> Gains:
    gains = {q: {doc: gain_of.get(grade, 0.0) for doc, grade in found.items()} for q, found in grades.items()}
    return relevant_only(gains)


def _records(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Numbered records of fields, in file order."""
    parts = _RECORD.split(read_unmarked(path))
    if len(parts) < 3:
        raise ConfigError(f"{path}: holds no record that begins with `.I`; give Cranfield's own file.")
    return [(int(number), _fields(body)) for number, body in zip(parts[1::2], parts[2::2], strict=True)]


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


def _grades(path: Path) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for number, line in read_lines(path):
        fields = line.split()
        if len(fields) != 3 or not all(re.fullmatch(r"-?\d+", field) for field in fields):
            raise ConfigError(f"{path}: line {number} should be three numbers: query, document, grade.")
        grades[fields[0]][file_name(int(fields[1]))] = int(fields[2])
    return grades

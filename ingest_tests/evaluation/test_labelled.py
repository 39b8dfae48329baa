"""Labelled sets: reading, and errors that name the file and the line."""

import csv
import io
import json
from codecs import BOM_UTF8
from pathlib import Path

import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.evaluation.labelled_sets import read_cranfield, read_labelled_folder, read_spans
from ingest_assets.evaluation.retrieval import read_gate
from ingest_assets.samples import labelled_folder

GOOD = b'{"id": "1", "text": "x"}\n'
NESTED = b"[" * 100_000


def _error_line(read: object, folder: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        read(folder)  # type: ignore[operator]
    (line,) = str(raised.value).splitlines()
    return line


def _write_set(folder: Path, queries: bytes = GOOD, qrels: bytes = b"1\ta.md\t1\n") -> Path:
    (folder / "documents").mkdir()
    (folder / "documents" / "a.md").write_text("x")
    (folder / "queries.jsonl").write_bytes(queries)
    (folder / "qrels.tsv").write_bytes(qrels)
    return folder


@pytest.mark.parametrize(
    "line",
    [
        b"[1, 2]",
        b'["id", "text"]',
        b'"id and text"',
        b"7",
        b"null",
        b"{}",
        b"{",
        NESTED,
        b"1" * 5000,
        b'{"text": "x"}',
        b'{"id": null, "text": "x"}',
        b'{"id": {"a": 1}, "text": "x"}',
        b'{"id": ["a"], "text": "x"}',
        b'{"id": true, "text": "x"}',
        b'{"id": "", "text": "x"}',
        b'{"id": "2", "text": 7}',
        b'{"id": "2", "text": null}',
        b'{"id": "2", "text": ["x"]}',
        b'{"id": "2", "text": "  "}',
        b'{"id": "2", "text": "a \\ud800 b"}',
        b'{"id": "2", "text": "\xff"}',
    ],
)
def test_an_invalid_query_is_reported_with_its_line(tmp_path: Path, line: bytes):
    """Scripts that write sets produce such lines."""
    message = _error_line(read_labelled_folder, _write_set(tmp_path, GOOD + b"\n" + line + b"\n"))

    assert message.startswith(f"{tmp_path / 'queries.jsonl'}: line 3")


@pytest.mark.parametrize("line", [b"1", b"1\ta.md", b"1\ta.md\t1\t1", b"1\ta.md\t", b"1\t\xff.md\t1"])
def test_an_invalid_judgement_is_reported_with_its_line(tmp_path: Path, line: bytes):
    """A tab is easily lost."""
    message = _error_line(read_labelled_folder, _write_set(tmp_path, GOOD, b"1\ta.md\t1\n\n" + line + b"\n"))

    assert message.startswith(f"{tmp_path / 'qrels.tsv'}: line 3")


@pytest.mark.parametrize("name", ["queries.jsonl", "qrels.tsv", "documents"])
@pytest.mark.parametrize("fault", ["absent", "a folder or a file instead", "empty"])
def test_a_missing_or_invalid_part_of_a_set_is_named(tmp_path: Path, name: str, fault: str):
    """The message has its path."""
    part = _write_set(tmp_path) / name
    if part.is_dir():
        (part / "a.md").unlink()
        part.rmdir()
    else:
        part.unlink()
    if fault == "empty":
        part.mkdir() if name == "documents" else part.touch()
    elif fault != "absent":
        part.touch() if name == "documents" else part.mkdir()

    message = _error_line(read_labelled_folder, tmp_path)

    assert str(part) in message


def test_only_a_newline_ends_a_line(tmp_path: Path):
    """JSON can contain U+2028 and U+0085 unescaped."""
    text = "one\u2028two\u0085three\x0bfour"
    queries = json.dumps({"id": "1", "text": text}, ensure_ascii=False).encode() + b"\r\n"

    assert read_labelled_folder(_write_set(tmp_path, queries)).queries == {"1": json.loads(queries)["text"]}


PAPERS = ".I 1\n.T\nwings\n.W\nwings and lift .\n.I 2\n.T\n.W\n"
QUERIES = ".I 001\n.W\nwhat is lift .\n.I 004\n.W\nwhy .\n"


def _cranfield(folder: Path, papers: str = PAPERS, queries: str = QUERIES, grades: str = "1 1 2\n") -> Path:
    (folder / "cran.all.1400").write_text(papers, "latin-1")
    (folder / "cran.qry").write_text(queries, "latin-1")
    (folder / "cranqrel").write_text(grades, "latin-1")
    return folder


@pytest.mark.parametrize(
    ("part", "content", "expected"),
    [
        ("papers", "", "no record begins"),
        ("papers", "wings\n", "no record begins"),
        ("papers", f".I {'9' * 5000}\n.W\nx\n", "no record begins"),
        ("papers", f"{PAPERS}.I 1\n.W\nagain\n", "line 9: duplicate record 1"),
        ("papers", ".I 1\n.T\nwings\n", "no record has text"),
        ("papers", ".I 1\n.W\nx\n\xff\n", "line 4 is not UTF-8"),
        ("queries", ".I 1\n.W\nx\n.I 2\n.W\n \n", "line 4: query 2 has no text"),
        ("queries", ".I 1\n.T\nx\n", "line 1: query 1 has no text"),
        ("grades", "", "no document is relevant"),
        ("grades", "1 1 -1\n", "no document is relevant"),
        ("grades", "1 1 2\n1 1\n", "line 2 must have three numbers"),
        ("grades", "1 1 2\n\n1 1 x\n", "line 3 must have three numbers"),
        ("grades", f"1 1 2\n1 {'9' * 5000} 1\n", "line 2 must have three numbers"),
        ("grades", "1 1 2\n3 1 2\n", "line 2: cran.qry has no query 3"),
        ("grades", "1 1 2\n1 7 2\n", "line 2: cran.all.1400 has no document 7"),
        ("grades", "1 1 2\n1 -1 2\n", "line 2: cran.all.1400 has no document -1"),
    ],
)
def test_errors_in_cranfield_are_reported(tmp_path: Path, part: str, content: str, expected: str):
    """With the file, and the line if there is one."""
    file = {"papers": "cran.all.1400", "queries": "cran.qry", "grades": "cranqrel"}[part]

    line = _error_line(read_cranfield, _cranfield(tmp_path, **{part: content}))

    assert line.startswith(str(tmp_path / file))
    assert expected in line


@pytest.mark.parametrize("name", ["cran.all.1400", "cran.qry", "cranqrel"])
@pytest.mark.parametrize("is_folder", [False, True])
def test_a_missing_file_of_cranfield_is_named(tmp_path: Path, name: str, is_folder: bool):
    """Perhaps the parent folder was given."""
    (_cranfield(tmp_path) / name).unlink()
    if is_folder:
        (tmp_path / name).mkdir()

    assert str(tmp_path / name) in _error_line(read_cranfield, tmp_path)


SPAN = {"content": "swarm", "start_index": 2, "end_index": 7}
HEADING = ["question", "references", "corpus_id"]


def _spans_set(folder: Path, *rows: list[str]) -> Path:
    (folder / "bees.md").write_text("A swarm.\n")
    written = io.StringIO(newline="")
    csv.writer(written).writerows([HEADING, ["What?", json.dumps([SPAN]), "bees"], *rows])
    (folder / "questions_df.csv").write_bytes(written.getvalue().encode("utf-8", "surrogateescape"))
    return folder


@pytest.mark.parametrize(
    "row",
    [
        ["What?"],
        ["What?", json.dumps([SPAN])],
        ["", json.dumps([SPAN]), "bees"],
        ["What?", "", "bees"],
        ["What?", "7", "bees"],
        ["What?", "{}", "bees"],
        ["What?", "[]", "bees"],
        ["What?", "[7]", "bees"],
        ["What?", "[[]]", "bees"],
        ["What?", NESTED.decode(), "bees"],
        ["What?", "[" + "1" * 5000 + "]", "bees"],
        ["What?", json.dumps([{"content": "swarm"}]), "bees"],
        ["What?", json.dumps([{**SPAN, "start_index": "two"}]), "bees"],
        ["What?", json.dumps([{**SPAN, "end_index": 1e400}]), "bees"],
        ["What?", json.dumps([{**SPAN, "start_index": -7, "end_index": -2}]), "bees"],
        ["What?", json.dumps([{**SPAN, "content": "", "end_index": 2}]), "bees"],
        ["What?", json.dumps([{"content": " ", "start_index": 1, "end_index": 2}]), "bees"],
        ["What?", json.dumps([SPAN, {"content": "\n", "start_index": 8, "end_index": 9}]), "bees"],
        ["What?", json.dumps([SPAN]), ""],
        ["What?", json.dumps([SPAN]), "../bees"],
        ["What?", json.dumps([SPAN]), "below/bees"],
        ["What?", json.dumps([SPAN]), "/bees"],
        ["What?", json.dumps([SPAN]), "be\0es"],
        ["What?", json.dumps([SPAN]), ".."],
        ["What? \udcff", json.dumps([SPAN]), "bees"],
    ],
)
def test_an_invalid_question_is_reported_with_its_line(tmp_path: Path, row: list[str]):
    """Texts are only read from the folder of the questions."""
    message = _error_line(read_spans, _spans_set(tmp_path, row))

    assert message.startswith(f"{tmp_path / 'questions_df.csv'}: line 3")


def test_the_missing_text_of_a_question_is_named(tmp_path: Path):
    """The message has the path of the missing file."""
    message = _error_line(read_spans, _spans_set(tmp_path, ["What?", json.dumps([SPAN]), "wasps"]))

    assert message.startswith(str(tmp_path / "wasps.md"))


@pytest.mark.parametrize("content", [b"", b"question,references,corpus_id\n", b"\xff\n", b"a,b\n1,2\n"])
def test_a_file_without_questions_is_rejected(tmp_path: Path, content: bytes):
    """Empty, only a header row, not UTF-8, or other columns."""
    (tmp_path / "questions_df.csv").write_bytes(content)

    assert _error_line(read_spans, tmp_path).startswith(str(tmp_path / "questions_df.csv"))


def test_a_long_list_of_spans_is_read(tmp_path: Path):
    """Python's csv has a default limit of 128 KiB per field."""
    folder = _spans_set(tmp_path, ["Where?", json.dumps([SPAN] * 3000), "bees"])

    assert len(read_spans(folder).spans["bees/2"][1]) == 3000


def test_a_text_has_the_name_of_its_document(tmp_path: Path):
    """Ids are in NFC, regardless of the file system."""
    (_spans_set(tmp_path, ["What?", json.dumps([SPAN]), "be\u0301es"]) / "be\u0301es.md").write_text(
        "A swarm.\n"
    )

    labelled = read_spans(tmp_path)

    assert labelled.texts.keys() == {"bees.md", "bées.md"} == {name for name, _ in labelled.spans.values()}


def test_cranfield_judgements_refer_to_the_position_of_a_query(tmp_path: Path):
    """Query 004 is the second; grade -1 is not relevant, and a paper without text is missing."""
    papers = (
        ".I 1\n.T\nwings in a\nslipstream .\n.A\nanonymous\n.W\nwings in a\nslipstream .\n"
        "  lift * was\nmeasured .\n.I 2\n.T\n.W\n"
    )
    queries = ".I 001\n.W\nwhat is\nlift .\n.I 004\n.W\nwhy .\n"

    labelled = read_cranfield(_cranfield(tmp_path, papers, queries, "1 1 2 \n1 2 -1\n2 2 4 \n"))

    assert labelled.texts == {
        "0001.md": "# wings in a slipstream .\n\nwings in a slipstream .\n\nlift \\* was measured .\n"
    }
    assert labelled.queries == {"1": "what is lift .", "2": "why ."}
    assert labelled.relevant == {"1": {"0001.md": 1.0}, "2": {"0002.md": 1.0}}
    assert labelled.graded == {"1": {"0001.md": 3.0}, "2": {"0002.md": 1.0}}
    assert labelled.missing == ["0002.md"]


@pytest.mark.parametrize("content", ["swarm", "warm"])
def test_spans_must_match_their_content(tmp_path: Path, content: str):
    """A text with other line ends would shift them all."""
    _spans_set(tmp_path, ["What?", json.dumps([{**SPAN, "content": content}]), "bees"])

    if content == "warm":
        with pytest.raises(ConfigError, match="question 2: characters 2 to 7"):
            read_spans(tmp_path)
    else:
        assert read_spans(tmp_path).spans["bees/2"] == ("bees.md", [(2, 7)])


@pytest.mark.parametrize(
    ("queries", "qrels", "expected"),
    [
        ('{"id": "1"}', "1\ta.md\t1", "line 1 must be"),
        ('{"id": "1", "text": "x"}\n{"id": "1", "text": "y"}', "1\ta.md\t1", "duplicate query"),
        ('{"_id": "1", "text": "x"}', "query-id\tcorpus-id\tscore\n1\tb.md\t1", "no document 'b.md'"),
        ('{"id": 1, "text": "x"}', "2\ta.md\t1", "no query '2'"),
        ('{"id": 1, "text": "x"}', "1 a.md 1", "separated by tabs"),
        ('{"id": 1, "text": "x"}', "1\ta.md\t0", "no document is relevant"),
        ('{"id": 1, "text": "x"}', "1\ta.md\tinf", "qrels.tsv: line 1: the grade must be .* got 'inf'"),
        ('{"id": 1, "text": "x"}', "1\ta.md\t1\n1\ta.md\tnan", "line 2: the grade must be .* got 'nan'"),
        ('{"id": 1, "text": "x"}', "1\ta.md\tl\n1\ta.md\t1", "line 1: the grade must be .* got 'l'"),
        ('{"id": 1, "text": "x"}', "q\ta.md\tl\n1\ta.md\t1", "line 1: queries.jsonl has no query 'q'"),
        (
            '{"id": 1, "text": "x"}',
            "1\ta.md\t1\n1\ta.md\t2",
            "line 2: duplicate document 'a.md' for query '1'",
        ),
        ('{"id": 1, "text": "x"}', "1\ta.md\t1\n1\t./a.md\t1", "line 2: duplicate document 'a.md'"),
        ('{"id": 1, "text": "x"}', "1\t../qrels.tsv\t1", "line 1: .* has no document '../qrels.tsv'"),
    ],
)
def test_errors_in_a_labelled_folder_are_reported(tmp_path: Path, queries: str, qrels: str, expected: str):
    """With the file and the line."""
    _write_set(tmp_path, queries.encode(), qrels.encode())

    with pytest.raises(ConfigError, match=expected):
        read_labelled_folder(tmp_path)


@pytest.mark.parametrize("written", ["./sub/é.md", "sub//é.md", "other/../sub/é.md", "sub/e\u0301.md"])
@pytest.mark.parametrize("stored", ["é.md", "e\u0301.md"])
def test_a_document_is_judged_by_the_path_in_its_id(tmp_path: Path, written: str, stored: str):
    """Any other form would never be labelled, and count as a miss."""
    (tmp_path / "documents" / "sub").mkdir(parents=True)
    (tmp_path / "documents" / "other").mkdir()
    (tmp_path / "documents" / "sub" / stored).write_text("x")
    (tmp_path / "queries.jsonl").write_text('{"id": 1, "text": "x"}')
    (tmp_path / "qrels.tsv").write_text(f"1\t{written}\t2", encoding="utf-8")

    assert read_labelled_folder(tmp_path).relevant == {"1": {"sub/é.md": 2.0}}


def test_a_byte_order_mark_before_a_judgement_is_ignored(tmp_path: Path):
    """Windows programs write one; the first judgement would be lost."""
    _write_set(tmp_path, BOM_UTF8 + GOOD, BOM_UTF8 + b"1\ta.md\t1\r\n")

    assert read_labelled_folder(tmp_path).relevant == {"1": {"a.md": 1.0}}


def test_a_byte_order_mark_before_papers_and_queries_is_ignored(tmp_path: Path):
    """Without the first query, every judgement would refer to the next one."""
    for path in _cranfield(tmp_path).iterdir():
        path.write_bytes(BOM_UTF8 + path.read_bytes())

    labelled = read_cranfield(tmp_path)

    assert labelled.texts.keys() == {"0001.md"}
    assert labelled.queries == {"1": "what is lift .", "2": "why ."}


def test_a_byte_order_mark_before_the_header_row_is_ignored(tmp_path: Path):
    """It would become part of the first column's name."""
    questions = _spans_set(tmp_path) / "questions_df.csv"
    questions.write_bytes(BOM_UTF8 + questions.read_bytes())

    assert read_spans(tmp_path).queries == {"bees/1": "What?"}


def test_the_samples_set_is_complete():
    """Every query has an answer, and every document answers a query."""
    labelled = read_labelled_folder(labelled_folder(), "samples")

    answers = {document for gains in labelled.relevant.values() for document in gains}
    assert labelled.relevant.keys() == labelled.queries.keys()
    assert answers == {path.name for path in (labelled_folder() / "documents").iterdir()}


@pytest.mark.parametrize("text", ["dense", "dense.ndcg@10=high", "thick.ndcg@10=0.5", "dense.ndcg@9=0.5"])
def test_an_invalid_gate_is_rejected(text: str):
    """Before anything is ingested."""
    with pytest.raises(ConfigError, match="--at-least"):
        read_gate(text, ["ndcg@10"])

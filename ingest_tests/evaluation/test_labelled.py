"""Labelled sets: what is read, and what is refused in one line that names the file and the line."""

import csv
import io
import json
from codecs import BOM_UTF8
from pathlib import Path

import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.evaluation.labelled import read_cranfield, read_own_files, read_spans
from ingest_assets.evaluation.retrieval import read_gate
from ingest_assets.samples import labelled_folder

GOOD = b'{"id": "1", "text": "x"}\n'
NESTED = b"[" * 100_000


def _refusal(read: object, folder: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        read(folder)  # type: ignore[operator]
    (line,) = str(raised.value).splitlines()
    return line


def _own_set(folder: Path, queries: bytes = GOOD, qrels: bytes = b"1\ta.md\t1\n") -> Path:
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
def test_a_query_that_is_none_is_named_with_its_line(tmp_path: Path, line: bytes):
    """Most of these lines were made by a script that nobody looked at."""
    said = _refusal(read_own_files, _own_set(tmp_path, GOOD + b"\n" + line + b"\n"))

    assert said.startswith(f"{tmp_path / 'queries.jsonl'}: line 3")


@pytest.mark.parametrize("line", [b"1", b"1\ta.md", b"1\ta.md\t1\t1", b"1\ta.md\t", b"1\t\xff.md\t1"])
def test_a_judgement_that_is_none_is_named_with_its_line(tmp_path: Path, line: bytes):
    """A tab is easily lost."""
    said = _refusal(read_own_files, _own_set(tmp_path, GOOD, b"1\ta.md\t1\n\n" + line + b"\n"))

    assert said.startswith(f"{tmp_path / 'qrels.tsv'}: line 3")


@pytest.mark.parametrize("name", ["queries.jsonl", "qrels.tsv", "documents"])
@pytest.mark.parametrize("fault", ["absent", "a folder or a file instead", "empty"])
def test_a_part_of_a_set_that_is_no_such_thing_is_named(tmp_path: Path, name: str, fault: str):
    """What should be there is said."""
    part = _own_set(tmp_path) / name
    if part.is_dir():
        (part / "a.md").unlink()
        part.rmdir()
    else:
        part.unlink()
    if fault == "empty":
        part.mkdir() if name == "documents" else part.touch()
    elif fault != "absent":
        part.touch() if name == "documents" else part.mkdir()

    said = _refusal(read_own_files, tmp_path)

    assert str(part) in said


def test_what_ends_a_line_is_a_newline_and_nothing_else(tmp_path: Path):
    """JSON may hold U+2028 and U+0085 as they are."""
    text = "one\u2028two\u0085three\x0bfour"
    queries = json.dumps({"id": "1", "text": text}, ensure_ascii=False).encode() + b"\r\n"

    assert read_own_files(_own_set(tmp_path, queries)).queries == {"1": json.loads(queries)["text"]}


PAPERS = ".I 1\n.T\nwings\n.W\nwings and lift .\n.I 2\n.T\n.W\n"
QUERIES = ".I 001\n.W\nwhat is lift .\n.I 004\n.W\nwhy .\n"


def _cranfield(folder: Path, papers: str = PAPERS, queries: str = QUERIES, grades: str = "1 1 2\n") -> Path:
    (folder / "cran.all.1400").write_text(papers, "latin-1")
    (folder / "cran.qry").write_text(queries, "latin-1")
    (folder / "cranqrel").write_text(grades, "latin-1")
    return folder


@pytest.mark.parametrize(
    ("part", "content", "said"),
    [
        ("papers", "", "holds no record"),
        ("papers", "wings\n", "holds no record"),
        ("papers", f".I {'9' * 5000}\n.W\nx\n", "holds no record"),
        ("papers", f"{PAPERS}.I 1\n.W\nagain\n", "line 9: record 1 is there twice"),
        ("papers", ".I 1\n.T\nwings\n", "no record has a text"),
        ("papers", ".I 1\n.W\nx\n\xff\n", "line 4 is not UTF-8"),
        ("queries", ".I 1\n.W\nx\n.I 2\n.W\n \n", "line 4: query 2 has no text"),
        ("queries", ".I 1\n.T\nx\n", "line 1: query 1 has no text"),
        ("grades", "", "finds no document relevant"),
        ("grades", "1 1 -1\n", "finds no document relevant"),
        ("grades", "1 1 2\n1 1\n", "line 2 should be three numbers"),
        ("grades", "1 1 2\n\n1 1 x\n", "line 3 should be three numbers"),
        ("grades", f"1 1 2\n1 {'9' * 5000} 1\n", "line 2 should be three numbers"),
        ("grades", "1 1 2\n3 1 2\n", "line 2: there is no query 3"),
        ("grades", "1 1 2\n1 7 2\n", "line 2: there is no document 7"),
        ("grades", "1 1 2\n1 -1 2\n", "line 2: there is no document -1"),
    ],
)
def test_slips_in_cranfield_are_named(tmp_path: Path, part: str, content: str, said: str):
    """With the file, and the line where there is one."""
    file = {"papers": "cran.all.1400", "queries": "cran.qry", "grades": "cranqrel"}[part]

    line = _refusal(read_cranfield, _cranfield(tmp_path, **{part: content}))

    assert line.startswith(str(tmp_path / file))
    assert said in line


@pytest.mark.parametrize("name", ["cran.all.1400", "cran.qry", "cranqrel"])
@pytest.mark.parametrize("is_folder", [False, True])
def test_a_file_of_cranfield_that_is_none_is_named(tmp_path: Path, name: str, is_folder: bool):
    """Somebody gave the folder above it, perhaps."""
    (_cranfield(tmp_path) / name).unlink()
    if is_folder:
        (tmp_path / name).mkdir()

    assert str(tmp_path / name) in _refusal(read_cranfield, tmp_path)


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
def test_a_question_that_is_none_is_named_with_its_line(tmp_path: Path, row: list[str]):
    """Nor is a text looked for anywhere but beside the questions."""
    said = _refusal(read_spans, _spans_set(tmp_path, row))

    assert said.startswith(f"{tmp_path / 'questions_df.csv'}: line 3")


def test_a_question_about_a_text_that_is_not_there_names_the_text(tmp_path: Path):
    """The file that is missing, that is."""
    said = _refusal(read_spans, _spans_set(tmp_path, ["What?", json.dumps([SPAN]), "wasps"]))

    assert said.startswith(str(tmp_path / "wasps.md"))


@pytest.mark.parametrize("content", [b"", b"question,references,corpus_id\n", b"\xff\n", b"a,b\n1,2\n"])
def test_questions_that_are_none_are_refused(tmp_path: Path, content: bytes):
    """Empty, a heading alone, no text, or something else."""
    (tmp_path / "questions_df.csv").write_bytes(content)

    assert _refusal(read_spans, tmp_path).startswith(str(tmp_path / "questions_df.csv"))


def test_a_long_list_of_spans_is_no_slip(tmp_path: Path):
    """Python's csv stops at 128 KiB unless told otherwise."""
    folder = _spans_set(tmp_path, ["Where?", json.dumps([SPAN] * 3000), "bees"])

    assert len(read_spans(folder).spans["bees/2"][1]) == 3000


def test_a_text_goes_by_the_name_of_its_document(tmp_path: Path):
    """Ids are in NFC, whatever the file system holds."""
    (_spans_set(tmp_path, ["What?", json.dumps([SPAN]), "be\u0301es"]) / "be\u0301es.md").write_text(
        "A swarm.\n"
    )

    found = read_spans(tmp_path)

    assert found.texts.keys() == {"bees.md", "bées.md"} == {name for name, _ in found.spans.values()}


def test_cranfield_is_read_by_the_place_of_its_queries(tmp_path: Path):
    """Query 004 is the second; grade -1 is not relevant, and a paper without text is missing."""
    papers = (
        ".I 1\n.T\nwings in a\nslipstream .\n.A\nnobody\n.W\nwings in a\nslipstream .\n"
        "  lift * was\nmeasured .\n.I 2\n.T\n.W\n"
    )
    queries = ".I 001\n.W\nwhat is\nlift .\n.I 004\n.W\nwhy .\n"

    found = read_cranfield(_cranfield(tmp_path, papers, queries, "1 1 2 \n1 2 -1\n2 2 4 \n"))

    assert found.texts == {
        "0001.md": "# wings in a slipstream .\n\nwings in a slipstream .\n\nlift \\* was measured .\n"
    }
    assert found.queries == {"1": "what is lift .", "2": "why ."}
    assert found.relevant == {"1": {"0001.md": 1.0}, "2": {"0002.md": 1.0}}
    assert found.graded == {"1": {"0001.md": 3.0}, "2": {"0002.md": 1.0}}
    assert found.missing == ["0002.md"]


@pytest.mark.parametrize("content", ["swarm", "warm"])
def test_spans_must_hold_what_they_say(tmp_path: Path, content: str):
    """A text with other line ends would shift them all."""
    _spans_set(tmp_path, ["What?", json.dumps([{**SPAN, "content": content}]), "bees"])

    if content == "warm":
        with pytest.raises(ConfigError, match="question 2: characters 2 to 7"):
            read_spans(tmp_path)
    else:
        assert read_spans(tmp_path).spans["bees/2"] == ("bees.md", [(2, 7)])


@pytest.mark.parametrize(
    ("queries", "qrels", "said"),
    [
        ('{"id": "1"}', "1\ta.md\t1", "line 1 should be"),
        ('{"id": "1", "text": "x"}\n{"id": "1", "text": "y"}', "1\ta.md\t1", "there twice"),
        ('{"_id": "1", "text": "x"}', "query-id\tcorpus-id\tscore\n1\tb.md\t1", "no document 'b.md'"),
        ('{"id": 1, "text": "x"}', "2\ta.md\t1", "no query '2'"),
        ('{"id": 1, "text": "x"}', "1 a.md 1", "by tabs"),
        ('{"id": 1, "text": "x"}', "1\ta.md\t0", "no document relevant"),
        ('{"id": 1, "text": "x"}', "1\ta.md\tinf", "qrels.tsv: line 1: the grade should be .* got 'inf'"),
        ('{"id": 1, "text": "x"}', "1\ta.md\t1\n1\ta.md\tnan", "line 2: the grade should be .* got 'nan'"),
        ('{"id": 1, "text": "x"}', "1\ta.md\tl\n1\ta.md\t1", "line 1: the grade should be .* got 'l'"),
        ('{"id": 1, "text": "x"}', "q\ta.md\tl\n1\ta.md\t1", "line 1: there is no query 'q'"),
        ('{"id": 1, "text": "x"}', "1\ta.md\t1\n1\ta.md\t2", "line 2: 'a.md' is there twice for query '1'"),
        ('{"id": 1, "text": "x"}', "1\ta.md\t1\n1\t./a.md\t1", "line 2: 'a.md' is there twice"),
        ('{"id": 1, "text": "x"}', "1\t../qrels.tsv\t1", "line 1: there is no document '../qrels.tsv'"),
    ],
)
def test_slips_in_a_set_of_ones_own_are_named(tmp_path: Path, queries: str, qrels: str, said: str):
    """With the file and the line."""
    _own_set(tmp_path, queries.encode(), qrels.encode())

    with pytest.raises(ConfigError, match=said):
        read_own_files(tmp_path)


@pytest.mark.parametrize("written", ["./sub/é.md", "sub//é.md", "other/../sub/é.md", "sub/e\u0301.md"])
@pytest.mark.parametrize("stored", ["é.md", "e\u0301.md"])
def test_a_document_is_judged_under_the_path_of_its_id(tmp_path: Path, written: str, stored: str):
    """Written in another way it would never be found, and count as a miss."""
    (tmp_path / "documents" / "sub").mkdir(parents=True)
    (tmp_path / "documents" / "other").mkdir()
    (tmp_path / "documents" / "sub" / stored).write_text("x")
    (tmp_path / "queries.jsonl").write_text('{"id": 1, "text": "x"}')
    (tmp_path / "qrels.tsv").write_text(f"1\t{written}\t2", encoding="utf-8")

    assert read_own_files(tmp_path).relevant == {"1": {"sub/é.md": 2.0}}


def test_a_byte_order_mark_belongs_to_no_label(tmp_path: Path):
    """Windows puts one before every text; here the first judgement would be lost by it."""
    _own_set(tmp_path, BOM_UTF8 + GOOD, BOM_UTF8 + b"1\ta.md\t1\r\n")

    assert read_own_files(tmp_path).relevant == {"1": {"a.md": 1.0}}


def test_a_byte_order_mark_hides_no_paper_and_no_query(tmp_path: Path):
    """Without its first query every judgement would be of the one after."""
    for path in _cranfield(tmp_path).iterdir():
        path.write_bytes(BOM_UTF8 + path.read_bytes())

    found = read_cranfield(tmp_path)

    assert found.texts.keys() == {"0001.md"}
    assert found.queries == {"1": "what is lift .", "2": "why ."}


def test_a_byte_order_mark_hides_no_column(tmp_path: Path):
    """The first column would have another name."""
    questions = _spans_set(tmp_path) / "questions_df.csv"
    questions.write_bytes(BOM_UTF8 + questions.read_bytes())

    assert read_spans(tmp_path).queries == {"bees/1": "What?"}


def test_the_set_that_ships_is_whole():
    """Every query has an answer, and every document answers a query."""
    found = read_own_files(labelled_folder(), "samples")

    answers = {document for gains in found.relevant.values() for document in gains}
    assert found.relevant.keys() == found.queries.keys()
    assert answers == {path.name for path in (labelled_folder() / "documents").iterdir()}


@pytest.mark.parametrize("text", ["dense", "dense.ndcg@10=high", "thick.ndcg@10=0.5", "dense.ndcg@9=0.5"])
def test_a_gate_on_nothing_is_refused(text: str):
    """Before anything is ingested."""
    with pytest.raises(ConfigError, match="--at-least"):
        read_gate(text, ["ndcg@10"])

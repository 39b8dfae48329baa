"""Labelled sets: what is read, and what is refused in one line."""

import csv
import json
from pathlib import Path

import pytest

from ingest_assets.core.errors import ConfigError
from ingest_assets.evaluation.labelled import read_cranfield, read_own_files, read_spans
from ingest_assets.evaluation.retrieval import read_gate
from ingest_assets.samples import labelled_folder

PAPERS = (
    ".I 1\n.T\nwings in a\nslipstream .\n.A\nnobody\n.W\nwings in a\nslipstream .\n  lift * was\nmeasured .\n"
    ".I 2\n.T\n.W\n"
)


def test_cranfield_is_read_by_the_place_of_its_queries(tmp_path: Path):
    """Query 004 is the second; grade -1 is not relevant, and a paper without text is missing."""
    (tmp_path / "cran.all.1400").write_text(PAPERS)
    (tmp_path / "cran.qry").write_text(".I 001\n.W\nwhat is\nlift .\n.I 004\n.W\nwhy .\n")
    (tmp_path / "cranqrel").write_text("1 1 2 \n1 2 -1\n2 2 4 \n")

    found = read_cranfield(tmp_path)

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
    (tmp_path / "bees.md").write_text("A swarm.\n")
    reference = json.dumps([{"content": content, "start_index": 2, "end_index": 7}])
    with (tmp_path / "questions_df.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["question", "references", "corpus_id"], ["What?", reference, "bees"]])

    if content == "warm":
        with pytest.raises(ConfigError, match="question 1: characters 2 to 7"):
            read_spans(tmp_path)
    else:
        assert read_spans(tmp_path).spans == {"bees/1": ("bees.md", [(2, 7)])}


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
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "a.md").write_text("x")
    (tmp_path / "queries.jsonl").write_text(queries)
    (tmp_path / "qrels.tsv").write_text(qrels)

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
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "a.md").write_text("x")
    (tmp_path / "queries.jsonl").write_text('{"id": 1, "text": "x"}\r\n', encoding="utf-8-sig")
    (tmp_path / "qrels.tsv").write_text("1\ta.md\t1\r\n", encoding="utf-8-sig")

    assert read_own_files(tmp_path).relevant == {"1": {"a.md": 1.0}}


def test_a_byte_order_mark_hides_no_paper_and_no_query(tmp_path: Path):
    """Without its first query every judgement would be of the one after."""
    (tmp_path / "cran.all.1400").write_text(PAPERS, encoding="utf-8-sig")
    (tmp_path / "cran.qry").write_text(".I 001\n.W\nlift .\n.I 004\n.W\nwhy .\n", encoding="utf-8-sig")
    (tmp_path / "cranqrel").write_text("1 1 2 \n", encoding="utf-8-sig")

    found = read_cranfield(tmp_path)

    assert found.texts.keys() == {"0001.md"}
    assert found.queries == {"1": "lift .", "2": "why ."}


def test_a_byte_order_mark_hides_no_column(tmp_path: Path):
    """The first column would have another name."""
    (tmp_path / "bees.md").write_text("A swarm.\n")
    reference = json.dumps([{"content": "swarm", "start_index": 2, "end_index": 7}])
    with (tmp_path / "questions_df.csv").open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows([["question", "references", "corpus_id"], ["What?", reference, "bees"]])

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

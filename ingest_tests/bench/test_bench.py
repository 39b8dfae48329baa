"""The benchmarks can be listed and run; no test asserts a speed."""

import json
import re
import time

import pytest

from ingest_assets.stages.chunks.stage import ChunksStage
from ingest_tests.bench import chunk_speed, reading_speed
from ingest_tests.bench.__main__ import exit_code, main, table_line
from ingest_tests.bench.chunk_texts import chunk_texts
from ingest_tests.bench.comparing import MOST_ROUNDS, ROUNDS, Comparison, compared
from ingest_tests.bench.documents import files_below
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.bench.memory_plot import as_svg, memory_figures, sparkline
from ingest_tests.bench.registry import NAMES, quick_scale
from ingest_tests.bench.whole_runs import WholeRun, whole_run


def test_every_benchmark_is_listed_with_its_purpose(capsys):
    """The listed names are the accepted ones."""
    assert main(["--list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(NAMES)
    assert all(len(line.split()) > 4 for line in lines)


def test_a_tiny_run_gives_a_table_and_a_file(tmp_path, capsys):
    """In a separate process, like real runs; the exit code matches the file."""
    file = tmp_path / "bench.json"

    code = main(["skipped_items", "--scale", "0.001", "--json", str(file)])

    header, *rows = capsys.readouterr().out.splitlines()
    report = json.loads(file.read_text(encoding="utf-8"))
    assert re.split(r"  +", header) == [
        *("name", "figure", "measured", "unit", "spread", "wanted", "ok", "note")
    ]
    assert [row["figure"] for row in report["figures"]] == [re.split(r"  +", row)[1] for row in rows]
    assert report["figures"][0] | {"value": 1000, "ok": True} == report["figures"][0]
    assert code == (0 if all(row["ok"] for row in report["figures"]) else 1)


def test_a_benchmark_that_breaks_is_a_missed_figure(monkeypatch, capsys):
    """Its process ends with an error, which the table shows."""
    monkeypatch.setattr("ingest_tests.bench.apart.sys.executable", "/bin/false")

    assert main(["skipped_items"]) == 1
    assert capsys.readouterr().out.splitlines()[1].split()[-1] == "NO"


@pytest.mark.parametrize(
    ("relation", "holding", "missing"), [("<", 4, 5), ("<=", 5, 5.1), ("=", 5, 4), (">=", 5, 4)]
)
def test_one_missed_figure_is_exit_code_1(relation, holding, missing):
    """Figures for information are never missed."""
    good, bad = Figure("a", holding, "s", relation, 5), Figure("b", missing, "s", relation, 5)

    assert exit_code([("x", good), ("x", Figure("c", 1e9))]) == 0
    assert exit_code([("x", good), ("x", bad)]) == 1
    assert table_line("x", good).endswith("yes")
    assert table_line("x", bad).endswith("NO")


def test_two_ways_are_timed_in_turns():
    """What the first of a round leaves in caches helps both ways alike."""
    calls: list[str] = []

    found = compared(lambda: calls.append("naive"), lambda: calls.append("ours"), rounds=4, at_least_s=0)

    assert calls == ["naive", "ours", "ours", "naive"] * 2
    assert len(found.naive_seconds) == len(found.ours_seconds) == 4


def test_a_ratio_is_best_against_best_and_has_a_spread():
    """One slow round widens the spread and changes nothing else."""
    found = Comparison((8.0, 20.0, 9.0), (2.0, 2.5, 4.0), "a", "b")
    figure = found.figure("speed", ">=", 4)

    assert (found.ratio, found.spread) == (4.0, (2.25, 8.0))
    assert figure.is_ok
    assert "2.25 to 8" in table_line("x", figure)
    assert table_line("x", figure).endswith("8 s against 2 s")


def test_short_ways_are_timed_more_often():
    """A short load by another process must not decide."""
    assert len(compared(int, int, at_least_s=60).ours_seconds) == MOST_ROUNDS
    assert len(compared(lambda: time.sleep(0.05), int, at_least_s=0.12).ours_seconds) == ROUNDS


def test_fewer_than_three_rounds_are_refused():
    """The best of two is chance."""
    with pytest.raises(ValueError, match="at least 3"):
        compared(int, int, rounds=2)


def test_the_state_is_restored_before_every_timed_call():
    """Otherwise a way would find the work of the other done."""
    calls: list[str] = []

    compared(
        lambda: calls.append("x"),
        lambda: calls.append("x"),
        at_least_s=0,
        before_each=lambda: calls.append("-"),
    )

    assert calls == ["-", "x"] * 6


def test_an_unknown_name_is_wrong_usage(capsys):
    """The error lists the known names."""
    with pytest.raises(SystemExit) as left:
        main(["fast_items"])

    assert left.value.code == 2
    assert "skipped_items" in capsys.readouterr().err


def test_a_tiny_size_still_has_an_item():
    """A share of nothing measures nothing."""
    assert [Size(scale).of(200) for scale in (1, 0.1, 0.0001)] == [200, 20, 1]


def test_a_scaled_corpus_has_all_its_kinds(tmp_path):
    """A quick run on the user's documents must cover each kind."""
    for kind, count in {"md": 40, "html": 10, "pdf": 1}.items():
        for number in range(count):
            (tmp_path / f"{number:02}.{kind}").touch()

    found = [files_below(tmp_path, ("md", "html", "pdf"), Size(scale)) for scale in (1, 0.1, 5)]

    assert [len(files) for files in found] == [51, 6, 51]
    assert [path.name for path in found[1]] == ["00.html", "00.md", "00.pdf", "10.md", "20.md", "30.md"]


def test_a_figure_that_needs_the_full_size_is_information_at_a_smaller_one():
    """Start-up costs dominate the ratio of a small corpus."""
    figure = Figure("rerun", 12, "times", ">=", 50, note="60 s against 5 s", needs_full_size=True)

    small, full = figure.at(Size(0.1)), figure.at(Size(1))

    assert (small.is_ok, full.is_ok) == (True, False)
    assert small.note == "60 s against 5 s; >= 50 is wanted at full size only"


def test_a_quick_run_says_at_which_scale_each_was_measured(tmp_path):
    """So its file differs from that of a full run."""
    file = tmp_path / "bench.json"

    main(["stuck_item", "--quick", "--json", str(file)])

    assert json.loads(file.read_text(encoding="utf-8"))["scale"] == {"stuck_item": quick_scale("stuck_item")}


def test_memory_is_drawn_as_a_sparkline_and_as_a_plot():
    """Flat is near one, peak to peak; the plot has a mark where a batch ended."""
    run = WholeRun(resident=[(0, 50), (0, 100), (1, 90), (1, 98), (2, 104)])

    (figure,) = memory_figures(run, 2000)

    assert (figure.value, figure.is_ok) == (1.04, True)
    assert sparkline([0, 50, 100], width=3) == "▁▄█"
    assert as_svg(run.resident, 2000).count("stroke-dasharray") == 2


def test_a_format_that_a_corpus_lacks_is_not_measured(tmp_path):
    """Docling rejects an empty list; the line says that nothing was read."""
    (figure,) = reading_speed._compared("docx", 1.7, [], tmp_path, None, None)

    assert (figure.name, figure.value, figure.is_ok) == ("docx: documents", 0, True)
    assert "not measured" in figure.note


def test_reading_is_compared_in_rounds_that_have_a_spread(tmp_path, monkeypatch):
    """A single ratio has no confidence."""
    path = tmp_path / "a.md"
    path.write_text("# Bees\n")
    monkeypatch.setattr(reading_speed, "docling_loop", lambda docling, paths: time.sleep(0.2) or ["bees"])
    monkeypatch.setattr(reading_speed, "_stage", lambda items, home, backend: time.sleep(0.1))
    monkeypatch.setattr(reading_speed, "_staged", lambda items, home: ["bees"])

    figures = {each.name: each for each in reading_speed._compared("md", 1.7, [path], tmp_path, None, None)}

    low, high = figures["md: ratio"].spread
    assert low <= high
    assert figures["md: ratio"].note
    assert figures["md: documents with other doctags"].value == 0


def test_a_corpus_without_text_is_replaced_by_the_samples(tmp_path):
    """A user's folder may contain only scans."""
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.4")

    texts, note = chunk_texts(Size(0.1, tmp_path), 4)

    assert 1 <= len(texts) <= 4
    assert str(tmp_path) in note


def test_a_corpus_without_documents_is_replaced_by_generated_ones(tmp_path, monkeypatch):
    """Chunks of nothing would be equal and fast."""
    monkeypatch.setattr(chunk_speed, "_MADE", ("md",))
    corpus, folder = tmp_path / "corpus", tmp_path / "made"
    corpus.mkdir()
    folder.mkdir()

    texts, items, note = chunk_speed._documents(Size(0.01, corpus), folder, ChunksStage())

    assert len(texts) == len(items) > 0
    assert str(corpus) in note


def test_a_command_that_ends_before_the_kill_fails_the_benchmark(tmp_path):
    """An uninterrupted command proves nothing about continuing."""
    with pytest.raises(AssertionError, match="not killed"):
        whole_run(tmp_path / "home", "--help", batch_documents=1, stop=lambda: False)

    whole_run(tmp_path / "home", "--help", batch_documents=1, stop=lambda: True)

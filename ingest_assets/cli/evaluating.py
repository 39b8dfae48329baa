"""`ingest eval`: how good is what comes out, measured against what should."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from ingest_assets.app.home import open_home
from ingest_assets.app.report import require_place, write_report
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.evaluation.parse import (
    Measured,
    PageEngine,
    Sample,
    circumstances,
    engine_of,
    read_and_measure,
    report_object,
    samples_in,
    speed,
)
from ingest_assets.settings.parsing import EngineName, ParsingOptions

# name in the report, heading of the column
_FIGURES = (
    ("word_ratio", "words"),
    ("heading_recall", "h-rec"),
    ("heading_precision", "h-prec"),
    ("heading_f1", "h-f1"),
    ("heading_levels", "levels"),
    ("table_cell_f1", "cells"),
    ("table_content_f1", "content"),
    ("order", "order"),
)
_LEGEND = (
    "words: word-sequence ratio; h-…: headings, recall, precision, F1; levels: same heading level; "
    "cells: table cell F1; content: the same wherever cells stand; order: reading order"
)


def evaluate_parsing(
    documents: Path,
    truth: Path,
    output: Path | None,
    engine: Literal["auto", EngineName] | None,
    home: Path | None,
    *,
    as_json: bool,
) -> int:
    """Read, compare, report; gives the exit code."""
    options = open_home(home, only_looks=True).settings_found.parsing
    if engine is not None:
        options = options.model_copy(update={"pdf": engine})
    chosen = engine_of(options)
    samples = samples_in(documents, truth, warn)
    require_place(output)
    measured = _measured(samples, options, chosen, is_quiet=as_json)
    report = circumstances(documents, truth, options, chosen) | report_object(measured)
    if output is not None:
        write_report(output, report)
    if as_json:
        print_json(report)
    else:
        _print_totals(report, output)
    return 1 if report["total"]["failed"] else 0


def _measured(
    samples: Sequence[Sample], options: ParsingOptions, engine: PageEngine, *, is_quiet: bool
) -> list[Measured]:
    if not is_quiet:
        compared = sum(sample.truth is not None for sample in samples)
        say(f"{len(samples)} documents, {compared} with a truth; pages read by {engine.name} ({engine.why}).")
        say(f"{_LEGEND}.")
        say(_line([heading for _, heading in _FIGURES], "speed", "document"))
    measured = []
    for one in read_and_measure(samples, options, engine):
        measured.append(one)
        if not is_quiet:
            say(_document_line(one))
    return measured


def _document_line(one: Measured) -> str:
    if one.error is not None:
        return _line(["-"] * len(_FIGURES), one.error.code, f"{one.sample.name}: {one.error.message}")
    figures = one.scores.as_dict() if one.scores else {}
    note = "" if one.scores else f" (no truth; {one.chars} characters read)"
    return _figures_line(figures | speed([one]), one.sample.name + note)


def _print_totals(report: dict[str, Any], output: Path | None) -> None:
    say()
    groups = [*report["by_kind"].items(), ("all", report["total"])]
    for name, figures in groups:
        counts = f"{figures['read']} read, {figures['failed']} failed, {figures['scored']} compared"
        say(_figures_line(figures, f"{name}: {counts}"))
    if output is not None:
        say(f"Report: {output}")


def _figures_line(figures: dict[str, Any], name: str) -> str:
    pages, documents = figures["pages_per_s"], figures["documents_per_s"]
    rate = f"{pages:.1f} pages/s" if pages else f"{documents:.1f} docs/s" if documents else "-"
    return _line([_share(figures.get(key)) for key, _ in _FIGURES], rate, name)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _line(figures: Sequence[str], rate: str, name: str) -> str:
    return " ".join(f"{figure:>7}" for figure in figures) + f" {rate:>14}  {name}"

"""`ingest eval parse | retrieval`: how good is what comes out, measured against what should."""

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ingest_assets.app.home import open_home
from ingest_assets.app.model_switch import families
from ingest_assets.app.report import require_place, write_report
from ingest_assets.cli.flags import HomeFlag, JsonFlag, group
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.cli.run import executing, progress_mode
from ingest_assets.core.errors import ConfigError, IngestError
from ingest_assets.evaluation.ingest import Ingested, alone, ingest_set, layout_for
from ingest_assets.evaluation.ingest import report_object as retrieval_object
from ingest_assets.evaluation.labelled import LabelledSet, read_cranfield, read_own_files, read_spans
from ingest_assets.evaluation.parse import (
    Measured,
    PageEngine,
    Sample,
    circumstances,
    engine_of,
    read_and_measure,
    samples_in,
    speed,
)
from ingest_assets.evaluation.parse import report_object as parse_object
from ingest_assets.evaluation.retrieval import DOCUMENT_FIGURES, PASSAGE_FIGURES, Figures, read_gate
from ingest_assets.samples import labelled_folder
from ingest_assets.settings.parsing import EngineName, ParsingOptions

app = group("Quality reports: what comes out, measured against what should.")

SetName = Literal["samples", "cranfield", "spans", "files"]

SetFlag = Annotated[
    SetName,
    typer.Option("--set", help="The set that ships with the product, one of two known ones, or your own."),
]
PathFlag = Annotated[
    Path | None, typer.Option("--path", readable=False, help="Folder of the set; samples needs none.")
]
GateFlag = Annotated[
    list[str] | None,
    typer.Option("--at-least", help="A figure to reach, as in dense.ndcg@10=0.395; may be given often."),
]
KeepFlag = Annotated[
    bool, typer.Option("--keep/--no-keep", help="Keep the set's tables: the next time costs what changed.")
]
DocumentsFlag = Annotated[Path, typer.Option("--documents", readable=False, help="Folder with documents.")]
TruthFlag = Annotated[
    Path,
    typer.Option("--truth", readable=False, help="Folder with their Markdown: <file>.md, or <stem>.md."),
]
OutputFlag = Annotated[
    Path | None, typer.Option("--output", readable=False, help="File that the report is written to, as JSON.")
]
EngineFlag = Annotated[
    Literal["auto", EngineName] | None,
    typer.Option("--engine", help="Who reads PDFs and images, in place of the setting parsing.pdf."),
]


# `ingest eval retrieval`.


_READERS = {"cranfield": read_cranfield, "spans": read_spans, "files": read_own_files}
_FAILURES_SHOWN = 20


@app.command()
def retrieval(
    name: SetFlag = "samples",
    path: PathFlag = None,
    at_least: GateFlag = None,
    output: OutputFlag = None,
    keep: KeepFlag = True,
    home: HomeFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Ingest a labelled set through every stage, search it, and say how well that finds what it should.

    The settings are those of the home, its models included; the set lives in a home of its own below
    state/evaluation. Exit codes: 0 fine, 1 when a document failed or a figure was not reached, 2 wrong usage.
    """
    chosen = _read_set(name, path)
    graded = ["ndcg_graded@10"] if chosen.graded is not None else []
    figures = PASSAGE_FIGURES if chosen.spans else (*DOCUMENT_FIGURES, *graded)
    gates = [read_gate(text, figures) for text in at_least or []]
    require_place(output)
    settled = open_home(home, makes_no_ledger=True)
    layout = layout_for(settled, chosen)
    with alone(settled.layout):
        done = ingest_set(
            settled, layout, chosen, partial(executing, progress=progress_mode(as_json), with_settings=True)
        )
        _require_rows(done)
        report = retrieval_object(done, chosen, gates)
        if not keep:
            shutil.rmtree(layout.home)
            del report["home"]
    if output is not None:
        write_report(output, report)
    if as_json:
        print_json(report)
    else:
        _print_retrieval_report(report)
        if output is not None:
            say(f"Report: {output}")
    _warn(done, report)
    return int(report["exit_code"])


def _read_set(name: SetName, path: Path | None) -> LabelledSet:
    if name == "samples":
        if path is not None:
            raise ConfigError("--path: the set samples is inside the product; leave --path out.")
        return read_own_files(labelled_folder(), "samples")
    if path is None:
        raise ConfigError(f"--path: give the folder of the set {name}.")
    if not path.is_dir():
        raise ConfigError(f"{path}: is no folder; give the folder of the set {name}.")
    return _READERS[name](path.resolve())


def _require_rows(done: Ingested) -> None:
    """Nothing to search is an error; and a family without rows is no worse than others: it was not tried."""
    where = done.home.layout.home
    if not done.document_of:
        reasons = [*done.broken.values(), *done.failed.values(), *done.rejected.values()]
        why = reasons[0] if reasons else "there is none."
        raise IngestError(f"{where}: no document of the set can be searched: {why}")
    for family in families(done.home):
        table = done.home.tables(family, in_the_making=True)
        if not any(record.rows for record in table.records.values()):
            failed = [failure.error.message for failure in table.failures.values()]
            why = next(iter([*failed, *done.broken.values()]), "no document has any.")
            name = done.home.set_marks[family].name
            raise IngestError(f"{where}: {family} has no rows of {name} to search: {why}")


def _warn(done: Ingested, report: dict[str, Any]) -> None:
    for document, why in [*done.failed.items()][:_FAILURES_SHOWN]:
        warn(f"failed: {document}: {why}")
    for batch, why in done.broken.items():
        warn(f"{batch} is not complete: {why}")
    for gate in report["gates"]:
        if not gate["passed"]:
            warn(f"ingest: {gate['figure']} is {gate['reached']:.4f}, and should be {gate['at_least']:g}.")


def _print_retrieval_report(report: dict[str, Any]) -> None:
    """The report for a person."""
    counts = report["counts"]
    say(
        f"{report['set']}: {counts['searchable']} of {counts['documents']} documents can be found "
        f"({counts['rejected']} rejected, {counts['failed']} failed, {counts['without_text']} without text), "
        f"{counts['chunks']} chunks; {counts['queries'] - counts['without_relevant']} queries."
    )
    if counts["lost_relevant"]:
        say(f"{counts['lost_relevant']} relevant documents cannot be found, and count as misses.")
    if counts["without_relevant"]:
        said = f"{counts['without_relevant']} of {counts['queries']} queries"
        say(f"{said} have no document judged relevant, and are left out.")
    dense = report["models"]["dense"]
    say(f"Dense: {dense.get('model_id')} by {dense.get('provider')}; lexical: BM25; fused: reciprocal ranks.")
    if "aligned_share" in report:
        say(f"{report['aligned_share']['all']:.1%} of the chunks' tokens have a place in the texts.")
    for title, rankings in [("", report["rankings"]), *report.get("by_text", {}).items()]:
        _print_table(title, rankings)
    if "home" in report:  # it was kept
        say(f"Tables: {report['home']}/data")


def _print_table(title: str, rankings: dict[str, Figures]) -> None:
    shown = [name for name in next(iter(rankings.values())) if not name.startswith("token_iou")]
    names = [name for name in shown if not name.startswith("token_precision") or name.endswith("@5")]
    widths = [max(len(name), 7) for name in names]
    say()
    say(f"{title or 'ranking':24}" + "  ".join(f"{n:>{w}}" for n, w in zip(names, widths, strict=True)))
    for ranking, figures in rankings.items():
        cells = [f"{figures[name]:>{width}.3f}" for name, width in zip(names, widths, strict=True)]
        say(f"{ranking:24}" + "  ".join(cells))


# `ingest eval parse`.


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


@app.command()
def parse(
    documents: DocumentsFlag,
    truth: TruthFlag,
    output: OutputFlag = None,
    engine: EngineFlag = None,
    home: HomeFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Read every document below a folder, as a run would, and compare it with its truth.

    The settings are those of the home; nothing in it changes. Exit codes: 0 when every document was read,
    1 when one was not, 2 when there is nothing to compare.
    """
    options = open_home(home, only_looks=True).settings_found.parsing
    if engine is not None:
        options = options.model_copy(update={"pdf": engine})
    chosen = engine_of(options)
    samples = samples_in(documents, truth, warn)
    require_place(output)
    measured = _measured(samples, options, chosen, is_quiet=as_json)
    report = circumstances(documents, truth, options, chosen) | parse_object(measured)
    if output is not None:
        write_report(output, report)
    if as_json:
        print_json(report)
    else:
        _print_parse_report(report, output)
    return 1 if report["total"]["failed"] else 0


def _measured(
    samples: Sequence[Sample], options: ParsingOptions, engine: PageEngine, *, is_quiet: bool
) -> list[Measured]:
    """Every document, read and compared; a line on each for a person."""
    if not is_quiet:
        compared = sum(sample.truth is not None for sample in samples)
        say(f"{len(samples)} documents, {compared} with a truth; pages read by {engine.name} ({engine.why}).")
        say(f"{_LEGEND}.")
        say(_line([heading for _, heading in _FIGURES], "speed", "document"))
    measured = []
    for one in read_and_measure(samples, options, engine):
        measured.append(one)
        if is_quiet:
            continue
        if one.error is not None:
            say(_line(["-"] * len(_FIGURES), one.error.code, f"{one.sample.name}: {one.error.message}"))
        else:
            figures = one.scores.as_dict() if one.scores else {}
            note = "" if one.scores else f" (no truth; {one.chars} characters read)"
            say(_figures_line(figures | speed([one]), one.sample.name + note))
    return measured


def _print_parse_report(report: dict[str, Any], output: Path | None) -> None:
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
    values = [figures.get(key) for key, _ in _FIGURES]
    return _line(["-" if value is None else f"{value:.3f}" for value in values], rate, name)


def _line(figures: Sequence[str], rate: str, name: str) -> str:
    return " ".join(f"{figure:>7}" for figure in figures) + f" {rate:>14}  {name}"

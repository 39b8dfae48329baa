"""`ingest eval parse | retrieval`: measure the quality of parsing and retrieval."""

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ingest_assets.app.home import open_home
from ingest_assets.app.model_switch import families
from ingest_assets.app.report import require_writable, write_report
from ingest_assets.cli.flags import HomeFlag, JsonFlag, group
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.cli.run import executing, progress_mode
from ingest_assets.core.errors import ConfigError, IngestError
from ingest_assets.evaluation.labelled_sets import (
    LabelledSet,
    read_cranfield,
    read_labelled_folder,
    read_spans,
)
from ingest_assets.evaluation.parse_quality import (
    DocumentResult,
    PageEngine,
    Sample,
    describe_environment,
    find_samples,
    read_and_measure,
    resolve_engine,
    speed,
)
from ingest_assets.evaluation.parse_quality import report_object as parse_object
from ingest_assets.evaluation.retrieval import DOCUMENT_FIGURES, PASSAGE_FIGURES, Figures, read_gate
from ingest_assets.evaluation.retrieval_run import IngestedSet, evaluation_layout, ingest_set, lock_evaluation
from ingest_assets.evaluation.retrieval_run import report_object as retrieval_object
from ingest_assets.samples import labelled_folder
from ingest_assets.settings.parsing import EngineName, ParsingOptions

app = group("Measure the quality of parsing and retrieval.")

SetName = Literal["samples", "cranfield", "spans", "files"]

SetFlag = Annotated[
    SetName, typer.Option("--set", help="The samples, a public collection (cranfield, spans), or your files.")
]
PathFlag = Annotated[
    Path | None, typer.Option("--path", readable=False, help="Folder of the set; not needed for samples.")
]
GateFlag = Annotated[
    list[str] | None,
    typer.Option("--at-least", help="Minimum of a metric, as in dense.ndcg@10=0.395; repeatable."),
]
KeepFlag = Annotated[
    bool, typer.Option("--keep/--no-keep", help="Keep the set's tables for the next evaluation.")
]
DocumentsFlag = Annotated[Path, typer.Option("--documents", readable=False, help="Folder with documents.")]
TruthFlag = Annotated[
    Path,
    typer.Option("--truth", readable=False, help="Folder of the expected Markdown: <file>.md or <stem>.md."),
]
OutputFlag = Annotated[
    Path | None, typer.Option("--output", readable=False, help="Write the report to this file, as JSON.")
]
EngineFlag = Annotated[
    Literal["auto", EngineName] | None,
    typer.Option("--engine", help="Engine for PDFs and images; overrides parsing.pdf."),
]


# `ingest eval retrieval`.


_READERS = {"cranfield": read_cranfield, "spans": read_spans, "files": read_labelled_folder}
_FAILURES_SHOWN = 20


@app.command()
def retrieval(
    name: SetFlag = "samples",
    path: PathFlag = None,
    at_least: GateFlag = None,
    output: OutputFlag = None,
    keep: KeepFlag = True,
    home_path: HomeFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Ingest a labelled set through all stages, search it, and measure how well its documents are found.

    Uses the settings and models of the home; the set gets a separate home below state/evaluation.
    Exit codes: 0 success, 1 a document failed or a minimum was not reached, 2 invalid usage.
    """
    labelled = _read_set(name, path)
    graded = ["ndcg_graded@10"] if labelled.graded is not None else []
    figures = PASSAGE_FIGURES if labelled.spans else (*DOCUMENT_FIGURES, *graded)
    gates = [read_gate(text, figures) for text in at_least or []]
    require_writable(output)
    home = open_home(home_path, creates_ledger=False)
    layout = evaluation_layout(home, labelled)
    run = partial(executing, progress=progress_mode(as_json), with_settings=True)
    with lock_evaluation(home.layout):
        ingested = ingest_set(home, layout, labelled, run)
        _require_rows(ingested)
        report = retrieval_object(ingested, labelled, gates)
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
    _warn(ingested, report)
    return int(report["exit_code"])


def _read_set(name: SetName, path: Path | None) -> LabelledSet:
    if name == "samples":
        if path is not None:
            raise ConfigError("--path: not allowed with --set samples, which ships with the product.")
        return read_labelled_folder(labelled_folder(), "samples")
    if path is None:
        raise ConfigError("--path: required; set it to the folder of the labelled set.")
    if not path.is_dir():
        raise ConfigError(f"{path}: not a folder; set --path to the folder of the labelled set.")
    return _READERS[name](path.resolve())


def _require_rows(ingested: IngestedSet) -> None:
    """Raise if there is nothing to search, or if a family has no rows and so cannot be compared."""
    where = ingested.home.layout.home
    if not ingested.document_of:
        reasons = [*ingested.broken.values(), *ingested.failed.values(), *ingested.rejected.values()]
        reason = reasons[0] if reasons else "the set is empty."
        raise IngestError(f"{where}: no document of the set can be searched: {reason}")
    for family in families(ingested.home):
        table = ingested.home.tables(family, being_built=True)
        if not any(record.rows for record in table.records.values()):
            failed = [failure.error.message for failure in table.failures.values()]
            reason = next(iter([*failed, *ingested.broken.values()]), "no document produced any.")
            name = ingested.home.requested_sets[family].name
            raise IngestError(f"{where}: {family} has no rows of {name} to search: {reason}")


def _warn(ingested: IngestedSet, report: dict[str, Any]) -> None:
    for document, reason in [*ingested.failed.items()][:_FAILURES_SHOWN]:
        warn(f"failed: {document}: {reason}")
    for batch, reason in ingested.broken.items():
        warn(f"{batch} is not complete: {reason}")
    for gate in report["gates"]:
        if not gate["passed"]:
            warn(f"ingest: {gate['figure']} is {gate['reached']:.4f}, must be at least {gate['at_least']:g}.")


def _print_retrieval_report(report: dict[str, Any]) -> None:
    """Print the report as text."""
    counts = report["counts"]
    say(
        f"{report['set']}: {counts['searchable']} of {counts['documents']} documents are searchable "
        f"({counts['rejected']} rejected, {counts['failed']} failed, {counts['without_text']} without text), "
        f"{counts['chunks']} chunks; {counts['queries'] - counts['without_relevant']} queries."
    )
    if counts["lost_relevant"]:
        say(f"{counts['lost_relevant']} relevant documents are not searchable; they count as misses.")
    if counts["without_relevant"]:
        queries = f"{counts['without_relevant']} of {counts['queries']} queries"
        say(f"{queries} have no relevant document and are skipped.")
    dense = report["models"]["dense"]
    say(f"Dense: {dense.get('model_id')} by {dense.get('provider')}; lexical: BM25; fused: reciprocal ranks.")
    if "aligned_share" in report:
        say(f"{report['aligned_share']['all']:.1%} of the chunks' tokens were aligned with the texts.")
    for title, rankings in [("", report["rankings"]), *report.get("by_text", {}).items()]:
        _print_table(title, rankings)
    if "home" in report:  # with --keep
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
    "cells: table cell F1; content: the same, positions ignored; order: reading order"
)


@app.command()
def parse(
    documents: DocumentsFlag,
    truth: TruthFlag,
    output: OutputFlag = None,
    engine: EngineFlag = None,
    home_path: HomeFlag = None,
    as_json: JsonFlag = False,
) -> int:
    """Read every document below a folder, as a run would, and compare it with the expected Markdown.

    Uses the settings of the home and changes nothing in it. Exit codes: 0 every document was read, 1 a
    document failed, 2 there is nothing to compare.
    """
    options = open_home(home_path, read_only=True).resolved_settings.parsing
    if engine is not None:
        options = options.model_copy(update={"pdf": engine})
    resolved = resolve_engine(options)
    samples = find_samples(documents, truth, warn)
    require_writable(output)
    measured = _measure(samples, options, resolved, is_quiet=as_json)
    report = describe_environment(documents, truth, options, resolved) | parse_object(measured)
    if output is not None:
        write_report(output, report)
    if as_json:
        print_json(report)
    else:
        _print_parse_report(report, output)
    return 1 if report["total"]["failed"] else 0


def _measure(
    samples: Sequence[Sample], options: ParsingOptions, engine: PageEngine, *, is_quiet: bool
) -> list[DocumentResult]:
    """Read and compare every document; print a line for each unless quiet."""
    if not is_quiet:
        compared = sum(sample.truth is not None for sample in samples)
        say(f"{len(samples)} documents, {compared} with truth; engine {engine.name} ({engine.reason}).")
        say(f"{_LEGEND}.")
        say(_line([heading for _, heading in _FIGURES], "speed", "document"))
    measured = []
    for result in read_and_measure(samples, options, engine):
        measured.append(result)
        if is_quiet:
            continue
        name = result.sample.name
        if result.error is not None:
            say(_line(["-"] * len(_FIGURES), result.error.code, f"{name}: {result.error.message}"))
        else:
            figures = result.scores.as_dict() if result.scores else {}
            note = "" if result.scores else f" (no truth; {result.chars} characters read)"
            say(_figures_line(figures | speed([result]), name + note))
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

"""`ingest eval retrieval`: is what should be found, found? A labelled set goes through the product."""

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ingest_assets.app.home import open_home
from ingest_assets.app.model_switch import families
from ingest_assets.app.report import require_place, write_report
from ingest_assets.cli.commands.evaluating import SetName
from ingest_assets.cli.output import print_json, say, warn
from ingest_assets.cli.runs import executing, progress_mode
from ingest_assets.core.errors import ConfigError, IngestError
from ingest_assets.evaluation.ingest import Ingested, alone, ingest_set, layout_for, report_object
from ingest_assets.evaluation.labelled import LabelledSet, read_cranfield, read_own_files, read_spans
from ingest_assets.evaluation.retrieval import DOCUMENT_FIGURES, PASSAGE_FIGURES, Figures, Gate, read_gate
from ingest_assets.samples import labelled_folder

# What `ingest eval retrieval` has to say: one object for programs, a few lines for people.


def print_report(report: dict[str, Any]) -> None:
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


_READERS = {"cranfield": read_cranfield, "spans": read_spans, "files": read_own_files}


def evaluate_retrieval(
    name: SetName,
    path: Path | None,
    at_least: Sequence[str],
    output: Path | None,
    home: Path | None,
    *,
    keep: bool,
    as_json: bool,
) -> int:
    """Ingest a set, search it, report; gives the exit code."""
    chosen = _read_set(name, path)
    gates = _gates(at_least, chosen)
    require_place(output)
    settled = open_home(home, makes_no_ledger=True)
    layout = layout_for(settled, chosen)
    with alone(settled.layout):
        done = ingest_set(
            settled, layout, chosen, partial(executing, progress=progress_mode(as_json), with_settings=True)
        )
        _require_chunks(done)
        _require_rows(done)
        report = report_object(done, chosen, gates)
        if not keep:
            shutil.rmtree(layout.home)
            del report["home"]
    if output is not None:
        write_report(output, report)
    if as_json:
        print_json(report)
    else:
        print_report(report)
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


def _gates(given: Sequence[str], chosen: LabelledSet) -> list[Gate]:
    graded = ["ndcg_graded@10"] if chosen.graded is not None else []
    figures = PASSAGE_FIGURES if chosen.spans else (*DOCUMENT_FIGURES, *graded)
    return [read_gate(text, figures) for text in given]


def _require_chunks(done: Ingested) -> None:
    if not done.document_of:
        reasons = [*done.broken.values(), *done.failed.values(), *done.rejected.values()]
        why = reasons[0] if reasons else "there is none."
        raise IngestError(f"{done.home.layout.home}: no document of the set can be searched: {why}")


def _require_rows(done: Ingested) -> None:
    """A family of which nothing could be made is no worse than others: it was not tried."""
    for family in families(done.home):
        table = done.home.tables(family, in_the_making=True)
        if not any(record.rows for record in table.records.values()):
            failed = [failure.error.message for failure in table.failures.values()]
            why = next(iter([*failed, *done.broken.values()]), "no document has any.")
            name = done.home.set_marks[family].name
            raise IngestError(f"{done.home.layout.home}: {family} has no rows of {name} to search: {why}")


def _warn(done: Ingested, report: dict[str, Any]) -> None:
    for document, why in [*done.failed.items()][:20]:
        warn(f"failed: {document}: {why}")
    for batch, why in done.broken.items():
        warn(f"{batch} is not complete: {why}")
    for gate in report["gates"]:
        if not gate["passed"]:
            warn(f"ingest: {gate['figure']} is {gate['reached']:.4f}, and should be {gate['at_least']:g}.")

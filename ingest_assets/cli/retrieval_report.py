"""What `ingest eval retrieval` has to say: one object for programs, a few lines for people."""

from collections.abc import Iterable, Sequence
from typing import Any

from ingest_assets.cli.evaluation_home import Ingested
from ingest_assets.cli.output import say
from ingest_assets.cli.searching import chunk_rankings, document_rankings, with_fused
from ingest_assets.defs.home import Home
from ingest_assets.evaluation.found import Figures, document_figures, passage_figures
from ingest_assets.evaluation.gates import Gate
from ingest_assets.evaluation.labelled.labelled_set import LabelledSet
from ingest_assets.evaluation.passages import passages_of
from ingest_assets.storage.footer import read_footer


def report_object(done: Ingested, chosen: LabelledSet, gates: Sequence[Gate]) -> dict[str, Any]:
    """Search for every query of the set and measure what is found."""
    asked = {query: chosen.queries[query] for query in chosen.relevant}
    chunks = chunk_rankings(done.home, asked, done.document_of)
    measured: dict[str, Any]
    if chosen.spans:
        measured = _passages_measured(with_fused(chunks), done, chosen)
    else:
        documents = document_rankings(chunks, done.document_of)
        measured = {
            "rankings": {
                name: document_figures(found, chosen.relevant, chosen.graded)
                for name, found in documents.items()
            }
        }
    judged = [gate.judged(measured["rankings"]) for gate in gates]
    is_good = not done.failed and not done.broken and all(gate["passed"] for gate in judged)
    return {
        "set": chosen.name,
        "home": str(done.home.layout.home),
        "models": _models(done.home),
        "counts": _counts(done, chosen),
        **measured,
        "gates": judged,
        "seconds": done.seconds,
        "exit_code": 0 if is_good else 1,
    }


def _passages_measured(
    rankings: dict[str, dict[str, list[str]]], done: Ingested, chosen: LabelledSet
) -> dict[str, Any]:
    passages = passages_of(chosen.texts, chosen.spans, _chunk_texts(done))
    in_all = {name: passage_figures(found, passages, list(chosen.spans)) for name, found in rankings.items()}
    texts = {name: [query for query, (of, _) in chosen.spans.items() if of == name] for name in chosen.texts}
    by_text = {
        text: {name: passage_figures(found, passages, queries) for name, found in rankings.items()}
        for text, queries in texts.items()
    }
    shares = {text: round(passages.aligned_share(text), 4) for text in chosen.texts}
    return {
        "rankings": in_all,
        "by_text": by_text,
        "aligned_share": {"all": round(passages.aligned_share(), 4), **shares},
    }


def _chunk_texts(done: Ingested) -> Iterable[tuple[str, str, str]]:
    rows = done.home.tables("chunks").read(lambda each: each.select("chunk_id", "text"))
    return [(chunk_id, done.document_of[chunk_id], text) for chunk_id, text in rows.iter_rows()]


def _models(home: Home) -> dict[str, dict[str, str]]:
    """What the tables themselves say made them."""
    models: dict[str, dict[str, str]] = {}
    for stage in (name for name in ("dense", "sparse", "lexical") if name in home.graph):
        footer = read_footer(home.tables(stage, in_the_making=True).paths[0])
        models[stage] = dict(footer.extra) if footer else {}
    return models


def _counts(done: Ingested, chosen: LabelledSet) -> dict[str, int]:
    wanted = {document for gains in chosen.relevant.values() for document in gains}
    return {
        "documents": done.documents,
        "searchable": len(done.found),
        "rejected": len(done.rejected),
        "failed": len(done.failed),
        "without_text": len(chosen.missing),
        "lost_relevant": len(wanted - done.found),
        "chunks": len(done.document_of),
        "queries": len(chosen.queries),
        "without_relevant": len(chosen.queries.keys() - chosen.relevant.keys()),
    }


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

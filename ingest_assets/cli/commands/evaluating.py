"""`ingest eval parse | retrieval`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ingest_assets.cli.commands import flags
from ingest_assets.cli.commands.flags import group, libraries
from ingest_assets.settings.parsing import EngineName

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


@app.command()
def retrieval(
    name: SetFlag = "samples",
    path: PathFlag = None,
    at_least: GateFlag = None,
    output: OutputFlag = None,
    keep: KeepFlag = True,
    home: flags.HomeFlag = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """Ingest a labelled set through every stage, search it, and say how well that finds what it should.

    The settings are those of the home, its models included; the set lives in a home of its own below
    state/evaluation. Exit codes: 0 fine, 1 when a document failed or a figure was not reached, 2 wrong usage.
    """
    with libraries(home):
        from ingest_assets.cli.retrieval import evaluate_retrieval
    raise typer.Exit(evaluate_retrieval(name, path, at_least or [], output, home, keep=keep, as_json=as_json))


@app.command()
def parse(
    documents: DocumentsFlag,
    truth: TruthFlag,
    output: OutputFlag = None,
    engine: EngineFlag = None,
    home: flags.HomeFlag = None,
    as_json: flags.JsonFlag = False,
) -> None:
    """Read every document below a folder, as a run would, and compare it with its truth.

    The settings are those of the home; nothing in it changes. Exit codes: 0 when every document was read,
    1 when one was not, 2 when there is nothing to compare.
    """
    with libraries(home):
        from ingest_assets.cli.evaluating import evaluate_parsing
    raise typer.Exit(evaluate_parsing(documents, truth, output, engine, home, as_json=as_json))

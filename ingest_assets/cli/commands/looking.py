"""`ingest status | inspect | doctor`."""

from typing import Annotated

import typer

from ingest_assets.cli.commands import flags
from ingest_assets.cli.commands.flags import libraries
from ingest_assets.cli.interrupts import PRESSES

DocumentsFlag = Annotated[bool, typer.Option("--documents", help="One line per document: its checkpoint.")]
ChunksFlag = Annotated[int, typer.Option("--chunks", min=0, help="How many chunks to show.")]


def status(
    home: flags.HomeFlag = None, documents: DocumentsFlag = False, as_json: flags.JsonFlag = False
) -> None:
    """Show sources, batches, totals and failures; with --documents, how far each document is."""
    with libraries(home):
        from ingest_assets.cli.status import show_status
    show_status(home, with_documents=documents, as_json=as_json)


def inspect(
    document: flags.DocArgument,
    home: flags.HomeFlag = None,
    chunks: ChunksFlag = 3,
    as_json: flags.JsonFlag = False,
) -> None:
    """Show one document: where it came from, how it was read, its chunks and its vectors."""
    with libraries(home):
        from ingest_assets.cli.inspecting import show_document
    show_document(home, document, chunks, as_json=as_json)


def doctor(home: flags.HomeFlag = None, as_json: flags.JsonFlag = False) -> None:
    """Check Python, libraries, models, settings, folders and the Dagster instance."""
    with PRESSES.ending_at_once():  # wrong settings are one of its findings
        from ingest_assets.cli.doctor import show_findings
    raise typer.Exit(show_findings(home, as_json=as_json))

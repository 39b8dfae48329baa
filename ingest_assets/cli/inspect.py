"""`ingest inspect`: what the tables contain about one document."""

from typing import Annotated, Any

import typer

from ingest_assets.app.home import open_home
from ingest_assets.app.inspect import find_document, inspect_object
from ingest_assets.cli.flags import DocArgument, HomeFlag, JsonFlag
from ingest_assets.cli.output import print_json, say

ChunksFlag = Annotated[int, typer.Option("--chunks", min=0, help="Number of chunks to show.")]


def inspect(
    document: DocArgument, home_path: HomeFlag = None, chunks: ChunksFlag = 3, as_json: JsonFlag = False
) -> None:
    """Show one document: its source, how it was read, the admission verdict and its chunks."""
    home = open_home(home_path, read_only=True)
    result = inspect_object(home, find_document(home, document.strip()), chunks)
    if as_json:
        print_json(result)
    else:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    say(f"{result['doc_id']}  (batch {result['batch']}, number {result['seq']})")
    if result["deleted"]:
        has_rows = any(result["rows"].values())
        say("  deleted" + ("; the next run removes its rows" if has_rows else ""))
    if (row := result["documents"]) is not None:
        say(f"  {row['mime']}, {row['size_bytes']} bytes, sha256 {row['content_hash'][:16]}…")
        say(f"  {row['uri']}")
    if (row := result["doctags"]) is not None:
        say(f"  read by {row['parser']}: {row['pages']} pages, {row['texts']} texts, {row['tables']} tables, "
            f"{row['pictures']} pictures, {row['chars']} characters")  # fmt: skip
        say(f"  title: {row['title'] or '-'}")
        for warning in row["warnings"]:
            say(f"  warning: {warning}")
    if (row := result["admission"]) is not None:
        say(f"  {_verdict(row)}")
        parts = ", ".join(f"{name} {value:g}" for name, value in row["quality_parts"].items())
        language = f"{row['language']} ({row['language_score']:.2f})"
        say(f"  {language}, {row['chars']} characters ({row['size_class']}), entropy {row['entropy']:g}, "
            f"quality {row['quality']:g} ({parts})")  # fmt: skip
    say("  rows: " + ", ".join(f"{stage} {count}" for stage, count in result["rows"].items()))
    for stage, error in result["errors"].items():
        say(f"  failed in {stage}: {error}")
    for chunk in result["chunks"]:
        pages = f", pages {chunk['pages']}" if chunk["pages"] else ""
        say(f"\n  chunk {chunk['ordinal']} ({chunk['tokens']} tokens{pages}) {' > '.join(chunk['headings'])}")
        say(f"    {' '.join(chunk['text'].split())[:300]}")


def _verdict(row: dict[str, Any]) -> str:
    """Return the verdict of admission as a sentence."""
    if row["admitted"]:
        why = f" ({', '.join(row['tier_reasons'])})" if row["tier_reasons"] else ""
        return f"admitted as {row['tier']}{why}"
    other = row["duplicate_of"] or row["near_duplicate_of"]
    if other is not None:
        near = "" if row["duplicate_of"] else f", similarity {row['similarity']:.2f}"
        return f"rejected at {row['reject_mark']}: {row['reject_reason']} of {other}{near}"
    figures = f"{row['reject_figure']:g}, limit {row['reject_limit']:g}"
    return f"rejected at {row['reject_mark']}: {row['reject_reason']} ({figures})"

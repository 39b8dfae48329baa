"""`ingest watch list | add | remove`: the watched folders of a home."""

from pathlib import Path
from typing import Annotated

import typer

from ingest_assets.app.home import open_home
from ingest_assets.cli.flags import HomeFlag, JsonFlag, group
from ingest_assets.cli.output import grid, print_json, say

app = group("List, add and remove the folders that a home watches.")

FolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", readable=False, help="A folder.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A name from `ingest watch list`.")]
KeepFlag = Annotated[bool, typer.Option("--keep-documents", help="Keep its documents in the tables.")]


@app.command("list")
def list_folders(home_path: HomeFlag = None, as_json: JsonFlag = False) -> None:
    """List the watched folders, and whether a command or the settings added them."""
    sources = open_home(home_path, read_only=True).sources()
    lines = [{"name": s.name, "path": str(s.path), "added_by": s.origin} for s in sources]
    if as_json:
        print_json(lines)
    elif lines:
        grid("", ["name", "path", "added by"], [list(line.values()) for line in lines])
    else:
        say("No folder is watched; add one: ingest watch add FOLDER")


@app.command("add")
def add_folder(folder: FolderArgument, home_path: HomeFlag = None, as_json: JsonFlag = False) -> None:
    """Watch a folder without ingesting it now; `ingest all --input FOLDER` does both."""
    source = open_home(home_path).watch(folder)
    if as_json:
        print_json({"name": source.name, "path": str(source.path)})
    else:
        say(f"Watching {source.path} as {source.name}.")


@app.command("remove")
def remove_folder(
    name: NameArgument, keep: KeepFlag = False, home_path: HomeFlag = None, as_json: JsonFlag = False
) -> None:
    """Stop watching a folder. Its documents leave the tables with the next run; no file is deleted."""
    home = open_home(home_path, creates_ledger=False)
    count = home.unwatch(name, keeps_documents=keep)
    if as_json:
        print_json({"name": name, "documents_to_remove": count})
    else:
        then = f" The next run removes the rows of its {count} documents." if count else ""
        say(f"{name} is no longer watched.{then}")

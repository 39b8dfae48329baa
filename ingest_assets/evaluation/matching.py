"""Which file is the truth about a document."""

from pathlib import Path, PurePosixPath

MARKDOWN = (".md", ".markdown")


def find_truth(relative: PurePosixPath, documents: Path, truth: Path) -> Path | None:
    """The truth of the document at `relative` below `documents`: `<file>.md`, else `<stem>.md`.

    It is looked for at the same place below `truth`; also when one of the two folders is that of a single
    kind and the other one is the folder above. A Markdown document without one is its own truth.
    """
    own = documents / relative
    for folder in _folders(relative, documents, truth):
        for name in (f"{relative.name}.md", f"{relative.stem}.md"):
            if (folder / name).is_file():
                return folder / name
    return own if relative.suffix.lower() in MARKDOWN else None


def _folders(relative: PurePosixPath, documents: Path, truth: Path) -> list[Path]:
    parents = relative.parent.parts
    folders = [truth.joinpath(*parents), truth.joinpath(documents.name, *parents)]
    if parents[:1] == (truth.name,):
        folders.append(truth.joinpath(*parents[1:]))
    return folders

"""What a read document is, and how it is taken from Docling's own: canonical, small, counted."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from ingest_assets.model.identity import canonical_json


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """One document, read. Equal bytes and equal options give equal fields, in any process and folder."""

    doctags: str
    document: str  # Docling's JSON: sorted keys, no images
    parser: str
    pages: int
    texts: int
    tables: int
    pictures: int
    chars: int  # characters that can become chunks; whitespace does not count
    title: str | None
    warnings: tuple[str, ...]


def parsed(document: Any, *, name: str, parser: str, warnings: tuple[str, ...]) -> ParsedDocument:
    """The fields of a Docling document; the document itself is tidied in place."""
    from ingest_assets.parsing.writing import doctags_of

    _tidy(document, name)
    doctags = doctags_of(document)  # as Docling has it
    _keep_formulas(document)
    return ParsedDocument(
        doctags=doctags,
        document=document_json(document),
        parser=parser,
        pages=len(document.pages),
        texts=len(document.texts),
        tables=len(document.tables),
        pictures=len(document.pictures),
        chars=sum(len("".join(text.split())) for text in usable_texts(document)),
        title=title_of(document),
        warnings=warnings,
    )


def document_json(document: Any) -> str:
    """Docling's JSON, byte for byte the same for equal documents."""
    content = document.export_to_dict()
    for table in content.get("tables", ()):
        table["data"].pop("grid", None)  # computed again from the cells when the document is loaded
    return canonical_json(content)


def renamed(document: str, name: str) -> str:
    """The JSON of the same bytes under another name: what reading them as such a document would give."""
    content = json.loads(document)
    content["name"] = PurePosixPath(name).stem
    if content.get("origin") is not None:
        content["origin"]["filename"] = PurePosixPath(name).name
    return canonical_json(content)


def usable_texts(document: Any) -> Iterator[str]:
    """Every text of the body that a chunker sees: not headers and footers, nor the text inside pictures."""
    for item, _level in document.iterate_items():
        if hasattr(item, "data") and hasattr(item.data, "table_cells"):
            # a rich cell's content follows as items of its own
            yield from (cell.text for cell in item.data.table_cells if not hasattr(cell, "ref"))
        elif hasattr(item, "text"):
            yield item.text


def title_of(document: Any) -> str | None:
    """The body's title, else the title the file declares, else its first heading."""
    by_kind: dict[tuple[str, str], str] = {}
    for item in document.texts:
        text = " ".join(item.text.split())
        if text:
            by_kind.setdefault((item.label.value, item.content_layer.value), text)
    wanted = (("title", "body"), ("title", "furniture"), ("section_header", "body"))
    return next((by_kind[kind] for kind in wanted if kind in by_kind), None)


def _tidy(document: Any, name: str) -> None:
    document.name = PurePosixPath(name).stem
    if document.origin is not None:
        document.origin.filename = PurePosixPath(name).name
        document.origin.uri = None
    for item in (*document.pages.values(), *document.pictures, *document.tables):
        item.image = None
    for picture in document.pictures:
        _name_kind(picture)


def _name_kind(picture: Any) -> None:
    """Docling knows more kinds of charts than DocTags have names for, and then cannot write them at all."""
    found = picture.meta.classification.predictions if picture.meta and picture.meta.classification else []
    for kind in found:
        if not _has_token(kind.class_name):
            kind.class_name = "chart" if kind.class_name.endswith("_chart") else "other"


@cache
def _has_token(kind: str) -> bool:
    from docling_core.types.doc.tokens import DocumentToken

    try:
        return bool(DocumentToken.get_picture_classification_token(kind))
    except ValueError:
        return False


def _keep_formulas(document: Any) -> None:
    """What no model has decoded to LaTeX must not be lost to search."""
    for item in document.texts:
        if item.label.value == "formula" and not item.text:
            item.text = item.orig

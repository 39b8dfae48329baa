"""Documents without pages (web pages, Markdown, DOCX), written in one go.

Such documents have no places on pages to write down and no page breaks, which is most of what makes
Docling's writer slow. What is rare in them is left to that writer.
"""

from functools import cache
from typing import Any

from docling_core.types.doc import (
    CodeItem,
    DocItem,
    DocItemLabel,
    DoclingDocument,
    FloatingItem,
    GroupItem,
    InlineGroup,
    ListGroup,
    ListItem,
    NodeItem,
    PictureItem,
    RichTableCell,
    SectionHeaderItem,
    TableCell,
    TableItem,
    TextItem,
)
from docling_core.types.doc.document import DOCUMENT_TOKENS_EXPORT_LABELS
from docling_core.types.doc.tokens import DocumentToken

from ingest_assets.parsing.writing.cells import table_rows
from ingest_assets.parsing.writing.tree import Tree

_PLAIN = (TextItem, TableItem, PictureItem, GroupItem)
_PAGE_BREAK = "#_#_DOCLING_DOC_PAGE_BREAK_"  # Docling takes it for one of its own, wherever it stands


def as_flow(document: DoclingDocument) -> str | None:
    """The document's DocTags, or None when it has pages or something rare in it."""
    if document.pages:
        return None
    tree = Tree(document)
    if not all(_is_plain(node, tree) for node in tree.nodes):
        return None
    text = "\n".join(_Flow(document, tree).parts(document.body, set()))
    return None if _PAGE_BREAK in text else _tagged(f"{text}\n", DocumentToken.DOCUMENT.value)


def _is_plain(node: NodeItem, tree: Tree) -> bool:
    if not isinstance(node, _PLAIN) or (isinstance(node, DocItem) and node.prov):
        return False
    if isinstance(node, FloatingItem) and not all(ref.cref in tree for ref in node.captions):
        return False
    if isinstance(node, TableItem):
        return node.label in DOCUMENT_TOKENS_EXPORT_LABELS
    return not isinstance(node, PictureItem) or not (node.meta or node.__dict__.get("annotations"))


class _Flow:
    """One document on its way out. `done` are the nodes that are written already."""

    def __init__(self, document: DoclingDocument, tree: Tree) -> None:
        self._document = document
        self._tree = tree
        floating = [node for node in tree.nodes if isinstance(node, FloatingItem)]
        self._captions = {ref.cref for node in floating for ref in node.captions}
        # written with the item that they belong to
        self._attached = self._captions | {ref.cref for node in floating for ref in node.footnotes}
        self._in_captions = {
            node.self_ref
            for caption in self._captions
            for node in tree.below_ref(caption)
            if node.self_ref != caption
        }

    def parts(self, root: NodeItem, done: set[str]) -> list[str]:
        """The nodes below one, each on its own; those without text are left out."""
        done.add(root.self_ref)
        is_in_caption = root.self_ref in self._in_captions or root.self_ref in self._captions
        found = []
        for node in self._tree.below(root):
            ref = node.self_ref
            if ref not in done and (is_in_caption or ref not in self._in_captions):
                done.add(ref)
                if text := self._node(node, done):
                    found.append(text)
        return found

    def _node(self, node: NodeItem, done: set[str]) -> str:
        if isinstance(node, TextItem):
            return "" if node.self_ref in self._attached or _is_left_out(node) else self._text(node, done)
        if isinstance(node, TableItem):
            return self._table(node, done)
        if isinstance(node, PictureItem):
            caption = self._caption(node, done)  # Docling hands on what is written to pictures alone
            return _tagged(caption, DocumentToken.PICTURE.value) if caption else ""
        return self._group(node, done)

    def _group(self, group: NodeItem, done: set[str]) -> str:
        parts = self.parts(group, done)
        if isinstance(group, ListGroup):
            items = "".join(f"{_tagged(part, DocumentToken.LIST_ITEM.value)}\n" for part in parts)
            is_ordered = items and group.first_item_is_enumerated(self._document)
            tag = DocumentToken.ORDERED_LIST if is_ordered else DocumentToken.UNORDERED_LIST
            return _tagged(items, tag.value) if items else ""
        text = "\n".join(parts)
        if isinstance(group, InlineGroup):
            return _tagged(f"{text}\n", DocumentToken.INLINE.value) if text else ""
        return text

    def _text(self, item: TextItem, done: set[str]) -> str:
        text = self._own_text(item, done)
        if isinstance(item, CodeItem):
            language = DocumentToken.get_code_language_token(code_language=item.code_language)
            text = f"{language}{text}{self._caption(item)}"
        else:
            text = text.strip()
        return text if isinstance(item, ListItem) else _tagged(text, _tag(item))

    def _own_text(self, item: TextItem, done: set[str]) -> str:
        if not item.text and len(item.children) == 1:
            child = item.children[0].resolve(self._document)
            if isinstance(child, InlineGroup):
                done.add(child.self_ref)
                return self._group(child, done)
        return item.text

    def _table(self, table: TableItem, done: set[str]) -> str:
        text = table_rows(table, lambda cell: self._cell(cell, done)) + self._caption(table)
        return _tagged(text, DocumentToken.OTSL.value) if text else ""

    def _cell(self, cell: TableCell, done: set[str]) -> str:
        if not isinstance(cell, RichTableCell):
            return cell.text
        content: Any = cell.ref.resolve(self._document)
        done.add(content.self_ref)
        return self._node(content, done)

    def _caption(self, item: FloatingItem, done: set[str] | None = None) -> str:
        """Captions in one, each with what stands below it: anew, unless there is a `done`."""
        texts = []
        for ref in item.captions:
            caption: Any = ref.resolve(self._document)
            if isinstance(caption, TextItem) and not _is_left_out(caption):
                parts = [caption.text, *self.parts(caption, set() if done is None else done)]
                texts.append(" ".join(part for part in parts if part))
        text = " ".join(texts)
        return _tagged(text, DocumentToken.CAPTION.value) if text else ""


def _is_left_out(item: DocItem) -> bool:
    return item.label not in DOCUMENT_TOKENS_EXPORT_LABELS


def _tag(item: TextItem) -> str:
    return _named(item.label, item.level if isinstance(item, SectionHeaderItem) else 1)


@cache
def _named(label: DocItemLabel, level: int) -> str:
    return str(DocumentToken.create_token_name_from_doc_item_label(label, level))


def _tagged(text: str, tag: str) -> str:
    return f"<{tag}>{text}</{tag}>"

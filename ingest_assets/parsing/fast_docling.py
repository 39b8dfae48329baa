"""Writes exactly Docling's DocTags, in time linear in the size of the document.

Docling's own serializer traverses the whole document for every table, and checks all its settings for every
item. Import this module only where Docling is loaded already.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any

from docling_core.transforms.serializer.base import BaseTableSerializer, SerializationResult
from docling_core.transforms.serializer.doctags import (
    DocTagsDocSerializer,
    DocTagsParams,
    DocTagsTableSerializer,
)
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
from docling_core.types.doc.tokens import DocumentToken, TableToken


class Tree:
    """All nodes below the body. `below` omits nodes inside pictures, except their captions."""

    def __init__(self, document: DoclingDocument) -> None:
        self.nodes: list[NodeItem] = []
        self._order: list[NodeItem] = []
        self._spans: dict[str, tuple[int, int]] = {}
        self._walk(document, document.body, is_inside_picture=False)

    def below(self, ref: str) -> Sequence[NodeItem]:
        """Return the node with this reference and its descendants."""
        first, end = self._spans[ref]
        return self._order[first:end]

    def __contains__(self, ref: str) -> bool:
        return ref in self._spans

    def _walk(self, document: DoclingDocument, node: NodeItem, is_inside_picture: bool) -> None:
        self.nodes.append(node)
        first = len(self._order)
        if not is_inside_picture:
            self._order.append(node)
        captions = {ref.cref for ref in node.captions} if isinstance(node, PictureItem) else None
        for ref in node.children:
            child = ref.resolve(document)
            is_inside = captions is not None and child.self_ref not in captions
            self._walk(document, child, is_inside_picture or is_inside)
        if not is_inside_picture:
            self._spans[node.self_ref] = (first, len(self._order))


# A table's rows in DocTags: a token for each grid position, and the text at the start of a cell.

TextOf = Callable[[TableCell], str]


def table_rows(table: TableItem, text_of: TextOf) -> str:
    """Return all rows with their end tokens; empty for a table without cells."""
    if not table.data.table_cells:
        return ""
    return "".join(
        "".join(_row(at, row, text_of)) + TableToken.OTSL_NL.value for at, row in enumerate(table.data.grid)
    )


def _row(at: int, row: list[TableCell], text_of: TextOf) -> Iterator[str]:
    for column, cell in enumerate(row):
        if cell.start_row_offset_idx != at or cell.start_col_offset_idx != column:
            yield from _continued(cell, at, column)
        elif text := text_of(cell).strip():
            yield _cell_token(cell).value + text
        else:
            yield TableToken.OTSL_ECEL.value


def _cell_token(cell: TableCell) -> TableToken:
    if cell.column_header:
        return TableToken.OTSL_CHED
    if cell.row_header:
        return TableToken.OTSL_RHED
    return TableToken.OTSL_SROW if cell.row_section else TableToken.OTSL_FCEL


def _continued(cell: TableCell, row: int, column: int) -> Iterator[str]:
    """Yield the token of a position that is spanned by a cell to the left or above."""
    is_below, is_right = cell.start_row_offset_idx != row, cell.start_col_offset_idx != column
    if is_below and cell.col_span == 1:
        yield TableToken.OTSL_UCEL.value
    if is_right and cell.row_span == 1:
        yield TableToken.OTSL_LCEL.value
    if (is_below and cell.col_span != 1) or (is_right and cell.row_span != 1):
        yield TableToken.OTSL_XCEL.value


# Docling's own serializer, with a cache for values that are the same for all items.

_EXCLUSION_SETTINGS = ("labels", "layers", "pages", "start_idx", "stop_idx")
_FORWARDED = ("visited", "table_token")


class _TableWriter(DocTagsTableSerializer):
    """Uses one serializer for the cells of all tables; Docling creates and validates one per table."""

    def serialize(self, *, item: TableItem, doc_serializer: Any, **named: Any) -> SerializationResult:
        view = _Table.model_construct(item.model_fields_set, **item.__dict__)
        view._cell_writer = doc_serializer.cell_writer
        return super().serialize(item=view, doc_serializer=doc_serializer, **named)


class _Table(TableItem):
    _cell_writer: Any = None

    def export_to_otsl(self, doc: DoclingDocument, *_: Any, **named: Any) -> str:
        forwarded = {name: named[name] for name in _FORWARDED if name in named}
        return table_rows(
            self, lambda cell: cell._get_text(doc=doc, doc_serializer=self._cell_writer, **forwarded)
        )


class Writer(DocTagsDocSerializer):
    """Serializer of one document."""

    table_serializer: BaseTableSerializer = _TableWriter()

    @cached_property
    def cell_writer(self) -> "Writer":
        """The serializer of cell contents, which excludes no label."""
        return type(self)(doc=self.doc)

    @cached_property
    def _excluded_refs(self) -> dict[tuple[Any, ...], set[str]]:
        return {}

    def get_excluded_refs(self, **named: Any) -> set[str]:
        """Return the excluded nodes, cached per combination of settings."""
        values = (named.get(name, getattr(self.params, name)) for name in _EXCLUSION_SETTINGS)
        key = tuple(frozenset(value) if isinstance(value, set) else value for value in values)
        if key not in self._excluded_refs:
            self._excluded_refs[key] = super().get_excluded_refs(**named)
        return self._excluded_refs[key]

    def serialize_captions(self, item: FloatingItem, **named: Any) -> SerializationResult:
        """Work around a Docling bug: for a caption of code, it passes one argument twice and fails."""
        named.pop("is_inline_scope", None)
        return super().serialize_captions(item, **named)


# Documents without pages (web pages, Markdown, DOCX), written in one pass.
#
# They have no page positions and no page breaks, which make Docling's serializer slow. Documents with rare
# nodes are left to that serializer.

_PLAIN = (TextItem, TableItem, PictureItem, GroupItem)
_PAGE_BREAK = "#_#_DOCLING_DOC_PAGE_BREAK_"  # Docling treats it as a page break even inside a text


def as_flow(document: DoclingDocument) -> str | None:
    """Return the document's DocTags; None when it has pages or rare nodes."""
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
    """Writer of one document without pages. `done` are the references of the nodes already written."""

    def __init__(self, document: DoclingDocument, tree: Tree) -> None:
        self._document = document
        self._tree = tree
        floating = [node for node in tree.nodes if isinstance(node, FloatingItem)]
        self._captions = {ref.cref for node in floating for ref in node.captions}
        # written with their item
        self._attached = self._captions | {ref.cref for node in floating for ref in node.footnotes}
        self._in_captions = {
            node.self_ref
            for caption in self._captions
            for node in tree.below(caption)
            if node.self_ref != caption
        }

    def parts(self, root: NodeItem, done: set[str]) -> list[str]:
        """Return the texts of the nodes below `root`, without empty ones."""
        done.add(root.self_ref)
        is_in_caption = root.self_ref in self._in_captions or root.self_ref in self._captions
        texts = []
        for node in self._tree.below(root.self_ref):
            ref = node.self_ref
            if ref not in done and (is_in_caption or ref not in self._in_captions):
                done.add(ref)
                if text := self._node(node, done):
                    texts.append(text)
        return texts

    def _node(self, node: NodeItem, done: set[str]) -> str:
        if isinstance(node, TextItem):
            return "" if node.self_ref in self._attached or _is_excluded(node) else self._text(node, done)
        if isinstance(node, TableItem):
            return self._table(node, done)
        if isinstance(node, PictureItem):
            caption = self._caption(node, done)  # only for pictures, Docling shares `done` with captions
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
        if isinstance(item, ListItem):
            return text
        return _tagged(text, _tag(item.label, item.level if isinstance(item, SectionHeaderItem) else 1))

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
        """Return the captions with their descendants; without `done`, nodes already written are repeated."""
        texts = []
        for ref in item.captions:
            caption: Any = ref.resolve(self._document)
            if isinstance(caption, TextItem) and not _is_excluded(caption):
                parts = [caption.text, *self.parts(caption, set() if done is None else done)]
                texts.append(" ".join(part for part in parts if part))
        text = " ".join(texts)
        return _tagged(text, DocumentToken.CAPTION.value) if text else ""


def _is_excluded(item: DocItem) -> bool:
    return item.label not in DOCUMENT_TOKENS_EXPORT_LABELS


@cache
def _tag(label: DocItemLabel, level: int) -> str:
    return str(DocumentToken.create_token_name_from_doc_item_label(label, level))


def _tagged(text: str, tag: str) -> str:
    return f"<{tag}>{text}</{tag}>"


def doctags_of(document: DoclingDocument) -> str:
    """Return the document's DocTags. Items without a tag, such as form keys and markers, become text."""
    untagged = [at for at, item in enumerate(document.texts) if not _has_tag(item.label)]
    if untagged:
        document = document.model_copy(deep=True)
        for at in untagged:
            document.texts[at].label = DocItemLabel.TEXT
    # its constructor validates and repairs the whole document
    writer = Writer(doc=document, params=DocTagsParams(labels=DOCUMENT_TOKENS_EXPORT_LABELS))
    return as_flow(document) or writer.serialize().text


@cache
def _has_tag(label: DocItemLabel) -> bool:
    try:
        return bool(DocumentToken.create_token_name_from_doc_item_label(label))
    except RuntimeError:
        return False

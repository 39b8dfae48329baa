"""Docling's own writer of DocTags, but that it remembers what is the same for all items."""

from functools import cached_property, partial
from typing import Any

from docling_core.transforms.serializer.base import BaseTableSerializer, SerializationResult
from docling_core.transforms.serializer.doctags import (
    DocTagsDocSerializer,
    DocTagsParams,
    DocTagsTableSerializer,
)
from docling_core.types.doc import DoclingDocument, FloatingItem, TableCell, TableItem
from docling_core.types.doc.document import DOCUMENT_TOKENS_EXPORT_LABELS

from ingest_assets.parsing.writing.cells import table_rows

_LEAVE_OUT = ("labels", "layers", "pages", "start_idx", "stop_idx")
_HANDED_ON = ("visited", "table_token")


def opened(document: DoclingDocument) -> "Writer":
    """A writer of what `document.export_to_doctags()` gives. Docling checks and mends the document for it."""
    return Writer(doc=document, params=DocTagsParams(labels=DOCUMENT_TOKENS_EXPORT_LABELS))


class _TableWriter(DocTagsTableSerializer):
    """One writer for the cells of all tables: Docling makes one for each, and checks the document for it."""

    def serialize(self, *, item: TableItem, doc_serializer: Any, **named: Any) -> SerializationResult:
        view = _Table.model_construct(item.model_fields_set, **item.__dict__)
        view._cell_writer = doc_serializer.cell_writer
        return super().serialize(item=view, doc_serializer=doc_serializer, **named)


class _Table(TableItem):
    _cell_writer: Any = None

    def export_to_otsl(self, doc: DoclingDocument, *_: Any, **named: Any) -> str:
        handed_on = {name: named[name] for name in _HANDED_ON if name in named}
        return table_rows(self, partial(_text, doc=doc, doc_serializer=self._cell_writer, **handed_on))


def _text(cell: TableCell, **named: Any) -> str:
    return cell._get_text(**named)


class Writer(DocTagsDocSerializer):
    """Writes one document."""

    table_serializer: BaseTableSerializer = _TableWriter()

    @cached_property
    def cell_writer(self) -> "Writer":
        """Who writes what stands in cells: it leaves out nothing that has a tag."""
        return type(self)(doc=self.doc)

    @cached_property
    def _left_out(self) -> dict[tuple[Any, ...], set[str]]:
        return {}

    def get_excluded_refs(self, **named: Any) -> set[str]:
        """What is left out: the same for every item that is asked about with the same settings."""
        values = (named.get(name, getattr(self.params, name)) for name in _LEAVE_OUT)
        key = tuple(frozenset(value) if isinstance(value, set) else value for value in values)
        if key not in self._left_out:
            self._left_out[key] = super().get_excluded_refs(**named)
        return self._left_out[key]

    def serialize_captions(self, item: FloatingItem, **named: Any) -> SerializationResult:
        """Captions of code too: Docling's own writer stumbles over them, by naming one setting twice."""
        named.pop("is_inline_scope", None)
        return super().serialize_captions(item, **named)

"""A document's items as text for chunks, written without Docling's repeated checks."""

import re
from functools import cached_property
from typing import Any

from docling_core.transforms.chunker.hierarchical_chunker import ChunkingDocSerializer
from docling_core.transforms.serializer.base import BaseTableSerializer, SerializationResult, Span
from docling_core.transforms.serializer.common import DocSerializer
from docling_core.transforms.serializer.markdown import MarkdownParams
from docling_core.types.doc import (
    ContentLayer,
    DocItem,
    DocItemLabel,
    DoclingDocument,
    FloatingItem,
    ListGroup,
    ListItem,
    NodeItem,
    PictureItem,
    TextItem,
)

from ingest_assets.stages.chunks.tables import TripletWriter

_ALL_LAYERS = set(ContentLayer)
_PLAIN = frozenset({TextItem, ListItem})  # not their subclasses, which are written differently
_NUMBER = re.compile(r"\d+\.")
_BULLETS = frozenset("-*+")
_CHECKBOXES = frozenset({DocItemLabel.CHECKBOX_SELECTED, DocItemLabel.CHECKBOX_UNSELECTED})


class _FixedParams(MarkdownParams):
    """Parameters that ignore changes: the chunker never asks for others than the writer's own."""

    def model_copy(self, **named: Any) -> Any:
        return self

    def merge_with_patch(self, patch: dict[str, Any]) -> Any:
        return self

    def model_dump(self, **named: Any) -> dict[str, Any]:
        return dict(self.__dict__)


class Writer(ChunkingDocSerializer):
    """Writes the items of one document."""

    table_serializer: BaseTableSerializer = TripletWriter()
    params: MarkdownParams = _FixedParams.model_construct(
        **ChunkingDocSerializer.model_fields["params"].default.__dict__
    )

    @classmethod
    def of(cls, document: DoclingDocument, tables: BaseTableSerializer) -> "Writer":
        """Return a writer without validation: the document was validated when it was read."""
        return cls.model_construct(**(_PARTS | {"doc": document, "table_serializer": tables}))

    @cached_property
    def _items(self) -> list[DocItem]:
        """All items of the body, in every layer and inside pictures; computed once for the sets below."""
        walk = self.doc.iterate_items(traverse_pictures=True, included_content_layers=_ALL_LAYERS)
        return [item for item, _ in walk if isinstance(item, DocItem)]

    @cached_property
    def _left_out(self) -> set[str]:
        """Items of the body that are not written because of their label."""
        layers, labels = self.params.layers, self.params.labels
        # If a table is left out, so are the items that its cells refer to: Docling's own method finds them.
        if any(table.content_layer not in layers or table.label not in labels for table in self.doc.tables):
            return super().get_excluded_refs()
        return {
            item.self_ref for item in self._items if item.content_layer in layers and item.label not in labels
        }

    def get_excluded_refs(self, **named: Any) -> set[str]:
        """Return the same set for every item, since the parameters are fixed."""
        return self._left_out

    @cached_property
    def _captions_of_some_item(self) -> set[str]:
        """Captions that are written with their table or picture."""
        floating = (item for item in self._items if isinstance(item, FloatingItem))
        return {caption.cref for item in floating for caption in item.captions}

    @cached_property
    def _footnotes_of_some_item(self) -> set[str]:
        floating = (item for item in self._items if isinstance(item, FloatingItem))
        return {note.cref for item in floating for note in item.footnotes}

    @cached_property
    def _written_elsewhere(self) -> set[str]:
        return self._captions_of_some_item | self._footnotes_of_some_item | self._left_out

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {}

    @cached_property
    def _places_in_lists(self) -> dict[str, dict[str, int]]:
        return {}

    def serialize(
        self,
        *,
        item: NodeItem | None = None,
        list_level: int = 0,
        is_inline_scope: bool = False,
        visited: set[str] | None = None,
        **named: Any,
    ) -> SerializationResult:
        """Write plain texts, list items and bare pictures directly, and all others with Docling's method."""
        # A picture with neither caption nor description has no text.
        is_bare_picture = (
            type(item) is PictureItem
            and item.meta is None
            and not item.captions
            and not item.__dict__.get("annotations")
        )
        if item is not None and (is_bare_picture or _is_plain(item)):
            if visited is not None:
                visited.add(item.self_ref)
            if not isinstance(item, TextItem) or item.self_ref in self._written_elsewhere:
                return SerializationResult()
            return SerializationResult(text=self._text(item), spans=[Span(item=item)])
        return super().serialize(
            item=item, list_level=list_level, is_inline_scope=is_inline_scope, visited=visited, **named
        )

    def get_parts(
        self,
        item: NodeItem | None = None,
        *,
        traverse_pictures: bool = False,
        list_level: int = 0,
        is_inline_scope: bool = False,
        visited: set[str] | None = None,
        **named: Any,
    ) -> list[SerializationResult]:
        """Return the parts of a group and everything below it that are not written yet."""
        written = visited if visited is not None else set()
        parts = []
        walk = self.doc.iterate_items(
            root=item,
            with_groups=True,
            traverse_pictures=self.params.traverse_pictures,
            included_content_layers=self.params.layers,
        )
        for node, _depth in walk:
            if node.self_ref in written or self._skip_in_walk(node=node, root=item):
                continue
            written.add(node.self_ref)
            part = self.serialize(
                item=node, list_level=list_level, is_inline_scope=is_inline_scope, visited=written, **named
            )
            if part.text:
                parts.append(part)
        return parts

    def _text(self, item: TextItem) -> str:
        """Return an item's text, cached: Docling asks for the same item several times."""
        if item.self_ref in self._texts:
            return self._texts[item.self_ref]
        text = item.text
        if "\n" in text:
            text = "\n\n".join(block.replace("\n", "  \n") for block in text.split("\n\n"))
        if item.formatting is not None or item.hyperlink is not None:
            text = DocSerializer.post_process(
                self, text=text, formatting=item.formatting, hyperlink=item.hyperlink
            )
        text = f"{self._marker(item)} {text}" if isinstance(item, ListItem) else text
        self._texts[item.self_ref] = text
        return text

    def _marker(self, item: ListItem) -> str:
        """Return a list item's marker; without one, its number in a numbered list, else a dash."""
        marker = item.marker
        if marker in _BULLETS or _NUMBER.fullmatch(marker):
            return marker
        if marker:
            return f"- {marker}" if any(map(str.isalnum, marker)) else "-"
        group = item.parent.resolve(self.doc) if item.parent is not None else None
        if not isinstance(group, ListGroup):
            return "-"
        places = self._places_in_lists.get(group.self_ref)
        if places is None:
            is_numbered = group.first_item_is_enumerated(self.doc)
            places = {child.cref: at for at, child in enumerate(group.children, 1)} if is_numbered else {}
            self._places_in_lists[group.self_ref] = places
        return f"{places.get(item.self_ref, 0)}." if places else "-"


_PARTS = {name: field.default for name, field in Writer.model_fields.items() if not field.is_required()}


def _is_plain(item: NodeItem) -> bool:
    """Return True for a text that is written as it is."""
    if type(item) not in _PLAIN:
        return False
    values = item.__dict__
    return bool(values["text"]) and item.meta is None and values["label"] not in _CHECKBOXES

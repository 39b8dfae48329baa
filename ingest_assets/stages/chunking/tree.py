"""A document's tree, walked once for all that has to be known of every item."""

from collections.abc import Iterator
from functools import cached_property

from docling_core.transforms.serializer.markdown import MarkdownParams
from docling_core.types.doc import (
    ContentLayer,
    DocItem,
    DoclingDocument,
    FloatingItem,
    NodeItem,
    PictureItem,
)

_ALL_LAYERS = set(ContentLayer)


class Tree:
    """The items below a document's body."""

    def __init__(self, document: DoclingDocument, params: MarkdownParams) -> None:
        self._document = document
        self._layers = params.layers
        self._labels = params.labels
        self._enters_pictures = params.traverse_pictures

    @cached_property
    def _items(self) -> list[DocItem]:
        every = self._walked(self._document.body, _ALL_LAYERS, enters_pictures=True)
        return [item for item in every if isinstance(item, DocItem)]

    @cached_property
    def _floating(self) -> list[FloatingItem]:
        return [item for item in self._items if isinstance(item, FloatingItem)]

    @property
    def has_all_tables(self) -> bool:
        """True when no table is left out with all that its cells refer to."""
        return all(
            table.content_layer in self._layers and table.label in self._labels
            for table in self._document.tables
        )

    def left_out(self) -> set[str]:
        """Items of the body that are of a kind that is not written."""
        return {
            item.self_ref
            for item in self._items
            if item.content_layer in self._layers and item.label not in self._labels
        }

    def captions(self) -> set[str]:
        """Texts that are written with the table or picture they belong to."""
        return {caption.cref for item in self._floating for caption in item.captions}

    def footnotes(self) -> set[str]:
        """Likewise."""
        return {note.cref for item in self._floating for note in item.footnotes}

    def below(self, root: NodeItem) -> Iterator[NodeItem]:
        """A node and all below it, in reading order."""
        return self._walked(root, self._layers, enters_pictures=self._enters_pictures)

    def _walked(
        self, root: NodeItem, layers: set[ContentLayer], *, enters_pictures: bool
    ) -> Iterator[NodeItem]:
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node.content_layer in layers:
                yield node
            children = node.children
            if not children:
                continue
            if isinstance(node, PictureItem) and not enters_pictures:
                captions = {caption.cref for caption in node.captions}
                children = [child for child in children if child.resolve(self._document).self_ref in captions]
            waiting += [child.resolve(self._document) for child in reversed(children)]

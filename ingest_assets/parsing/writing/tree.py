"""A document's nodes in reading order, each walked to once."""

from collections.abc import Iterator, Sequence

from docling_core.types.doc import DoclingDocument, NodeItem, PictureItem


class Tree:
    """Every node below the body; what is inside pictures only counts as there, unless it is their caption."""

    def __init__(self, document: DoclingDocument) -> None:
        self.nodes: list[NodeItem] = []
        self._order: list[NodeItem] = []
        self._spans: dict[str, tuple[int, int]] = {}
        self._walk(document, document.body, is_inside_picture=False)

    def below(self, node: NodeItem) -> Sequence[NodeItem]:
        """The node and all below it."""
        return self.below_ref(node.self_ref)

    def below_ref(self, ref: str) -> Sequence[NodeItem]:
        """The same for a node's name."""
        first, end = self._spans[ref]
        return self._order[first:end]

    def __contains__(self, ref: str) -> bool:
        return ref in self._spans

    def _walk(self, document: DoclingDocument, node: NodeItem, is_inside_picture: bool) -> None:
        self.nodes.append(node)
        first = len(self._order)
        if not is_inside_picture:
            self._order.append(node)
        for child, is_inside in _children(document, node):
            self._walk(document, child, is_inside_picture or is_inside)
        if not is_inside_picture:
            self._spans[node.self_ref] = (first, len(self._order))


def _children(document: DoclingDocument, node: NodeItem) -> Iterator[tuple[NodeItem, bool]]:
    captions = {ref.cref for ref in node.captions} if isinstance(node, PictureItem) else None
    for ref in node.children:
        child = ref.resolve(document)
        yield child, captions is not None and child.self_ref not in captions

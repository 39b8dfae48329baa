"""Random Docling documents, built with the methods that Docling's own readers use."""

import warnings
from collections.abc import Callable
from typing import Any

from docling_core.types.doc import (
    BoundingBox,
    ContentLayer,
    CoordOrigin,
    DocItemLabel,
    DoclingDocument,
    Formatting,
    GroupLabel,
    ListGroup,
    ListItem,
    NodeItem,
    PictureClassificationLabel,
    ProvenanceItem,
    RichTableCell,
    Size,
    TableCell,
    TableData,
    TableItem,
    TextItem,
)
from docling_core.types.doc.items.picture.meta import (
    MoleculeMetaField,
    PictureClassificationMetaField,
    PictureClassificationPrediction,
    PictureMeta,
    TabularChartMetaField,
)
from docling_core.types.doc.labels import CodeLanguageLabel
from hypothesis import strategies as st

from ingest_tests.parsing.writing.oracle import TAGGED

PAGE_BREAK = "#_#_DOCLING_DOC_PAGE_BREAK_1_2_#_#"
GROUPS = (GroupLabel.UNSPECIFIED, GroupLabel.SECTION, GroupLabel.SLIDE, GroupLabel.PICTURE_AREA)
# Docling has no token for some of its own labels
CLASSES = (
    PictureClassificationLabel.BAR_CHART,
    PictureClassificationLabel.LOGO,
    PictureClassificationLabel.PIE_CHART,
    PictureClassificationLabel.PHOTOGRAPH,
)
WORDS = ("bee", "wax ", " hive", "two\nlines", "<text>", "</otsl><nl>", "", "", " ", "é ß 蜂")
LINKS = (None, None, None, "https://bees.example/a?b=c", "javascript:alert(1)")
LAYERS = (None, None, None, None, ContentLayer.FURNITURE, ContentLayer.NOTES, ContentLayer.INVISIBLE)
LANGUAGES = (None, CodeLanguageLabel.PYTHON, CodeLanguageLabel.C_PLUS_PLUS)

Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def documents(
    draw: Draw, *, page_count: int = 0, labels: tuple[DocItemLabel, ...] = TAGGED, rare: bool = False
):
    """A document of up to about thirty items; `rare` adds what only Docling's own serializer writes."""
    builder = _Builder(draw, page_count, labels, rare)
    with warnings.catch_warnings():  # Docling warns of what it repairs
        warnings.simplefilter("ignore")
        builder.children(builder.document.body, deep=0)
    return builder.document


class _Builder:
    """Draws and adds items until the document is large enough."""

    def __init__(self, draw: Draw, page_count: int, labels: tuple[DocItemLabel, ...], rare: bool) -> None:
        self.document = DoclingDocument(name="random")
        self._draw, self._labels, self._rare = draw, labels, rare
        self._left = 30
        self._page, self._page_count = 1, page_count
        self._origin = self._of((CoordOrigin.TOPLEFT, CoordOrigin.BOTTOMLEFT))
        for number in range(1, page_count + 1):
            self.document.add_page(number, Size(width=100 * number, height=200))
        self._makers = (
            *(self._text, self._heading, self._list, self._inline, self._group, self._table),
            *(self._picture, self._code, self._formula, self._stray_item, self._wrapped),
            *((self._misplaced_item,) if rare else ()),
        )

    def children(self, parent: NodeItem, deep: int, at_least: int = 0) -> None:
        """Add any items below a parent, recursively."""
        most = 0 if deep > 4 or self._left <= 0 else 6 if deep == 0 else 3
        for _ in range(self._number(min(at_least, most), most)):
            self._one(parent, deep)

    def _one(self, parent: NodeItem, deep: int) -> NodeItem:
        self._left -= 1
        made: NodeItem = self._of(self._makers)(parent, deep)
        return made

    def _of(self, choices: tuple[Any, ...]) -> Any:
        return self._draw(st.sampled_from(choices))

    def _number(self, least: int, most: int) -> int:
        return int(self._draw(st.integers(least, most)))

    def _likely(self) -> bool:
        return bool(self._draw(st.booleans()))

    def _seldom(self) -> bool:
        return self._number(0, 5) == 5

    def _words(self) -> str:
        words = [self._of(WORDS) for _ in range(self._number(1, 2))]
        return " ".join(words) if not (self._rare and self._seldom()) else PAGE_BREAK

    def _common(self, parent: NodeItem) -> dict[str, Any]:
        return {"parent": parent, "content_layer": self._of(LAYERS), "prov": self._place()}

    def _place(self) -> ProvenanceItem | None:
        if not self._page_count or self._seldom():
            return None
        if self._likely():  # mostly forwards
            self._page = min(self._page + self._number(0, 1), self._page_count)
        page = self._number(1, self._page_count) if self._seldom() else self._page
        left, top = self._number(-5, 90), self._number(0, 190)
        box = BoundingBox(l=left, t=top, r=left + 12, b=top + 7, coord_origin=self._origin)
        return ProvenanceItem(page_no=page, bbox=box, charspan=(0, 0))

    def _styled(self, parent: NodeItem) -> dict[str, Any]:
        formatting = Formatting(bold=True, italic=self._likely()) if self._seldom() else None
        return self._common(parent) | {"formatting": formatting, "hyperlink": self._of(LINKS)}

    def _more_places(self, item: Any) -> Any:
        if item.prov and self._seldom() and (place := self._place()):
            item.prov.append(place)
        return item

    def _text(self, parent: NodeItem, deep: int) -> NodeItem:
        text = self.document.add_text(self._of(self._labels), self._words(), **self._styled(parent))
        if self._seldom():
            self.children(text, deep + 1)
        return self._more_places(text)

    def _wrapped(self, parent: NodeItem, deep: int) -> NodeItem:
        """Formatted runs: an empty text with one inline group below it."""
        if self._likely():
            text = self.document.add_text(self._of(self._labels), "", **self._styled(parent))
        else:
            text = self.document.add_heading("", level=2, **self._styled(parent))
        self._inline(text, deep + 1)
        return text

    def _heading(self, parent: NodeItem, deep: int) -> NodeItem:
        if self._seldom():
            heading = self.document.add_title(self._words(), **self._styled(parent))
        else:
            heading = self.document.add_heading(
                self._words(), level=self._number(1, 6), **self._styled(parent)
            )
        self.children(heading, deep + 1)
        return self._more_places(heading)

    def _list(self, parent: NodeItem, deep: int) -> NodeItem:
        group = self.document.add_list_group(parent=parent, content_layer=self._of(LAYERS))
        for _ in range(self._number(0, 3)):
            if self._seldom():
                self._one(group, deep + 1)
                continue
            words = "" if self._seldom() else self._words()
            item = self.document.add_list_item(words, enumerated=self._likely(), **self._styled(group))
            self._left -= 1
            self.children(item, deep + 1)
        return group

    def _stray_item(self, parent: NodeItem, deep: int) -> NodeItem:
        """A list item without a list, for which Docling adds one."""
        owner = None if isinstance(parent, ListGroup) else parent
        item = self.document.add_list_item(self._words(), parent=owner, prov=self._place())
        return item.parent.resolve(self.document)

    def _misplaced_item(self, parent: NodeItem, deep: int) -> NodeItem:
        """The same as in older documents: Docling puts it into a list before writing."""
        if isinstance(parent, TableItem):  # it would no longer be the cell's own
            return self._text(parent, deep)
        words, name = self._words(), f"#/texts/{len(self.document.texts)}"
        item = ListItem(text=words, orig=words, self_ref=name, parent=parent.get_ref())
        self.document.texts.append(item)
        parent.children.append(item.get_ref())
        return item

    def _inline(self, parent: NodeItem, deep: int) -> NodeItem:
        group = self.document.add_inline_group(parent=parent, content_layer=self._of(LAYERS))
        for _ in range(self._number(0, 3)):
            if self._seldom():
                self._one(group, deep + 1)
            else:
                self.document.add_text(self._of(self._labels), self._words(), **self._styled(group))
        return group

    def _group(self, parent: NodeItem, deep: int) -> NodeItem:
        group = self.document.add_group(self._of(GROUPS), parent=parent, content_layer=self._of(LAYERS))
        self.children(group, deep + 1)
        return group

    def _code(self, parent: NodeItem, deep: int) -> NodeItem:
        code = self.document.add_code(
            self._words(), code_language=self._of(LANGUAGES), **self._styled(parent)
        )
        self._attach(code, deep)
        if self._seldom():
            self._inline(code, deep + 1)
        return code

    def _formula(self, parent: NodeItem, deep: int) -> NodeItem:
        return self.document.add_formula(self._words(), **self._styled(parent))

    def _picture(self, parent: NodeItem, deep: int) -> NodeItem:
        picture = self.document.add_picture(**self._common(parent))
        self._attach(picture, deep)
        if self._likely():
            self.children(picture, deep + 1)
        if self._rare and self._likely():
            picture.meta = self._meta()
        return self._more_places(picture)

    def _meta(self) -> PictureMeta:
        meta = PictureMeta()
        if self._likely():
            found = PictureClassificationPrediction(class_name=self._of(CLASSES).value, confidence=0.5)
            meta.classification = PictureClassificationMetaField(predictions=[found])
        if self._likely():
            meta.tabular_chart = TabularChartMetaField(chart_data=self._grid())
        if self._seldom():
            meta.molecule = MoleculeMetaField(smi="CCO")
        return meta

    def _attach(self, item: Any, deep: int) -> None:
        """Captions and footnotes: below the item, beside it, or those of an earlier one."""
        for refs, label in ((item.captions, DocItemLabel.CAPTION), (item.footnotes, DocItemLabel.FOOTNOTE)):
            for _ in range(self._of((0, 0, 1, 1, 2))):
                refs.append(self._attached(item, label, deep).get_ref())

    def _attached(self, item: NodeItem, label: DocItemLabel, deep: int) -> NodeItem:
        earlier = tuple(text for text in self.document.texts if not self._is_above(text, item))
        if earlier and self._seldom():
            return self._of(earlier)
        owner = self.document.body if self._seldom() else item
        text = self.document.add_text(label, self._words(), **self._styled(owner))
        if self._seldom():
            self.children(text, deep + 1, at_least=1)
        return text

    def _is_above(self, text: TextItem, item: NodeItem | None) -> bool:
        """Such a caption would hold the item that it belongs to, and Docling would never end."""
        while item is not None and item is not text:
            item = item.parent.resolve(self.document) if item.parent else None
        return item is text

    def _table(self, parent: NodeItem, deep: int) -> NodeItem:
        label = self._of((DocItemLabel.TABLE, DocItemLabel.TABLE, DocItemLabel.DOCUMENT_INDEX))
        table = self.document.add_table(TableData(), label=label, **self._common(parent))
        if self._likely():
            self._attach(table, deep)
        table.data = self._grid(table, deep + 1)
        if self._seldom():
            self.children(table, deep + 1)
        return self._more_places(table)

    def _grid(self, table: TableItem | None = None, deep: int = 0) -> TableData:
        rows, columns = self._number(0, 3), self._number(0, 3)
        data = TableData(num_rows=rows, num_cols=columns)
        for row in range(rows):
            for column in range(columns):
                if not self._seldom():  # else a place without a cell
                    data.table_cells.append(self._cell(row, column, table, deep))
        return data

    def _cell(self, row: int, column: int, table: TableItem | None, deep: int) -> TableCell:
        """A cell may reach over its neighbours, and out of the table."""
        down, right = (1 + self._of((0, 0, 0, 1, 2)) for _ in range(2))
        kind = self._of(("column_header", "row_header", "row_section", "fillable"))
        fields = {
            "text": self._words(),
            "start_row_offset_idx": row,
            "end_row_offset_idx": row + down,
            "start_col_offset_idx": column,
            "end_col_offset_idx": column + right,
            "row_span": down,
            "col_span": right,
            kind: self._likely(),
        }
        if table is None or deep > 4 or not self._seldom():
            return TableCell(**fields)
        return RichTableCell(**fields, ref=self._one(table, deep).get_ref())

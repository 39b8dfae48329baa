"""Random documents with all kinds of items that chunking must handle."""

import random
from collections.abc import Sequence

from docling_core.types.doc import (
    ContentLayer,
    DocItemLabel,
    DoclingDocument,
    Formatting,
    GroupLabel,
    NodeItem,
    RichTableCell,
    TableCell,
    TableData,
    TableItem,
)
from docling_core.types.doc.base import BoundingBox, Size
from docling_core.types.doc.document import ProvenanceItem
from pydantic import AnyUrl

WORDS = [
    *("bridge", "cable", "the", "inspected", "spring", "order,", "deck.", "railing!", "(repaired)", "naïve"),
    *("東京", "it's", "1,234.50", "[SEP]", "_under_", "**bold**", "a|b", "x\ny", "\x00", "\u200b", "😀"),
    *("https://example.org/a_b", "unbelievable;", "counter-example:", "“quoted”", "…"),
]


class Maker:
    """Adds random items to a document."""

    def __init__(self, seed: int, things: int, *, has_tables: bool) -> None:
        self._has_tables = has_tables
        self._random = random.Random(seed)
        self.document = DoclingDocument(name="made")
        self.document.add_page(1, Size(width=600, height=800))
        kinds = [self._paragraph, self._heading, self._list, self._table, self._picture, self._special]
        for _ in range(things):
            self._random.choice([*kinds, self._paragraph, self._inline, self._group])(None)

    def _words(self, most: int = 60) -> str:
        return " ".join(self._random.choices(WORDS, k=self._random.randint(1, most)))

    def _origin(self) -> ProvenanceItem | None:
        box = BoundingBox(l=1, t=1, r=9, b=9)
        return self._maybe(ProvenanceItem(page_no=self._random.randint(1, 3), bbox=box, charspan=(0, 1)))

    def _maybe(self, value, share: float = 0.5):
        return value if self._random.random() < share else None

    def _style(self):
        link = self._random.choice(
            [AnyUrl("https://example.org/x y(1)"), AnyUrl("https://example.org/?q=a_b")]
        )
        flags = {name: self._random.random() < 0.4 for name in ("bold", "italic", "strikethrough")}
        return {"formatting": self._maybe(Formatting(**flags), 0.3), "hyperlink": self._maybe(link, 0.2)}

    def _paragraph(self, parent: NodeItem | None) -> None:
        text = self._random.choice(["", " ", self._words(), self._words(), self._words(150)])
        layer = self._maybe(ContentLayer.FURNITURE, 0.1)
        label = self._random.choice([DocItemLabel.TEXT, DocItemLabel.PARAGRAPH, DocItemLabel.REFERENCE])
        self.document.add_text(
            label, text, prov=self._origin(), parent=parent, content_layer=layer, **self._style()
        )

    def _heading(self, parent: NodeItem | None) -> None:
        if self._random.random() < 0.2:
            self.document.add_title(self._words(6))
        else:
            self.document.add_heading(
                self._words(self._random.choice([4, 4, 4, 90])), level=self._random.randint(1, 3)
            )

    def _list(self, parent: NodeItem | None, depth: int = 0) -> None:
        group = self.document.add_list_group(parent=parent)
        numbered = self._random.random() < 0.5
        for _ in range(self._random.randint(0, 4)):
            marker = self._random.choice([None, "", "-", "•", "1.", "a)", "①"])
            text = self._random.choice(["", self._words(12), self._words(80)])
            item = self.document.add_list_item(
                text, enumerated=numbered, marker=marker, parent=group, **self._style()
            )
            if not text:
                self._inline(item)
            elif depth < 2 and self._random.random() < 0.3:
                self._list(self._random.choice([group, item]), depth + 1)

    def _inline(self, parent: NodeItem | None) -> None:
        group = self.document.add_inline_group(parent=parent)
        for _ in range(self._random.randint(1, 3)):
            kind = self._random.choice(["text", "code", "formula"])
            if kind == "text":
                self.document.add_text(DocItemLabel.TEXT, self._words(9), parent=group, **self._style())
            elif kind == "code":
                self.document.add_code(self._words(4), parent=group)
            else:
                self.document.add_formula(self._words(4), parent=group)

    def _group(self, parent: NodeItem | None) -> None:
        group = self.document.add_group(GroupLabel.SECTION, parent=parent)
        for _ in range(self._random.randint(0, 3)):
            self._random.choice([self._paragraph, self._list, self._table])(group)

    def _special(self, parent: NodeItem | None) -> None:
        kind = self._random.choice(["code", "formula", "checkbox", "captioned"])
        if kind == "code":
            self.document.add_code(self._words(30) + "\nend", caption=self._caption())
        elif kind == "formula":
            self.document.add_formula(self._random.choice(["", "a = b"]), orig="a = b")
        elif kind == "checkbox":
            label = self._random.choice([DocItemLabel.CHECKBOX_SELECTED, DocItemLabel.CHECKBOX_UNSELECTED])
            self.document.add_text(label, self._words(5))
        else:
            self.document.add_text(DocItemLabel.CAPTION, self._words(7))

    def _caption(self):
        return self._maybe(self.document.add_text(DocItemLabel.CAPTION, self._words(7), prov=self._origin()))

    def _picture(self, parent: NodeItem | None) -> None:
        picture = self.document.add_picture(caption=self._caption(), prov=self._origin())
        if self._random.random() < 0.4:
            self.document.add_text(DocItemLabel.TEXT, self._words(6), parent=picture)
        if self._random.random() < 0.3:
            note = self.document.add_text(DocItemLabel.FOOTNOTE, self._words(6))
            picture.footnotes.append(note.get_ref())

    def _table(self, parent: NodeItem | None) -> None:
        if not self._has_tables:
            return
        rows, columns = self._random.choice([(0, 0), (1, 1), (3, 1), (1, 3), (2, 2), (6, 4), (9, 3)])
        layer = self._maybe(ContentLayer.FURNITURE, 0.1) or ContentLayer.BODY
        table = self.document.add_table(
            TableData(num_rows=rows, num_cols=columns),
            caption=self._caption(),
            prov=self._origin(),
            parent=parent,
            content_layer=layer,
        )
        headers = self._random.randint(0, 2)
        for row in range(rows):
            for column in range(columns):
                if self._random.random() < 0.85:
                    table.data.table_cells.append(self._cell(table, row, column, row < headers))

    def _cell(self, table: TableItem, row: int, column: int, header: bool) -> TableCell:
        reach = self._random.choice([1, 1, 1, 2])
        place = {
            "start_row_offset_idx": row,
            "end_row_offset_idx": row + 1,
            "start_col_offset_idx": column,
            "end_col_offset_idx": min(column + reach, table.data.num_cols),
            "col_span": reach,
            "column_header": header,
        }
        if self._random.random() < 0.1:
            inner = self.document.add_group(GroupLabel.UNSPECIFIED, parent=table)
            self._paragraph(inner)
            self._list(inner, depth=2)
            return RichTableCell(text=self._words(3), ref=inner.get_ref(), **place)
        return TableCell(text=self._random.choice(["", " x ", self._words(3), self._words(30)]), **place)


def made(seed: int, things: int = 8, *, has_tables: bool = True) -> DoclingDocument:
    """Return the document of these numbers, stored and read again."""
    document = Maker(seed, things, has_tables=has_tables).document
    return DoclingDocument.model_validate_json(document.model_dump_json())


def table_of(*rows: Sequence[str]) -> TableData:
    """Return a table of these texts, with the first row as header."""
    cells = [
        TableCell(
            text=text,
            start_row_offset_idx=row,
            end_row_offset_idx=row + 1,
            start_col_offset_idx=column,
            end_col_offset_idx=column + 1,
            column_header=row == 0,
        )
        for row, texts in enumerate(rows)
        for column, text in enumerate(texts)
    ]
    return TableData(table_cells=cells, num_rows=len(rows), num_cols=len(rows[0]))

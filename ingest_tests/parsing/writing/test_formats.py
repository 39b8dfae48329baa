"""Files of formats without pages: our DocTags are equal to Docling's."""

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from ingest_tests.parsing.conftest import Read

HTML = """<html><head><title>Hives</title></head><body>
<h1>Hives</h1>
<p>A <b>hive</b> is <i>a house</i> for <a href="https://bees.example/">bees</a>; H<sub>2</sub>O is needed.</p>
<ul><li>Wood<ol><li>Pine</li><li>Lime <b>tree</b><ul><li>dry</li></ul></li></ol></li><li>Straw</li></ul>
<h3>Weights &lt;text&gt;</h3>
<table><caption>Weights in <em>spring</em></caption>
<tr><th colspan="2">Hive</th><th rowspan="2">Weight</th></tr>
<tr><th>No.</th><th>Name</th></tr>
<tr><td>1</td><td><ul><li>East</li><li>by the <b>pond</b></li></ul></td><td>7 kg</td></tr>
<tr><td>2</td><td><p>West</p><p>in the <a href="/shade">shade</a></p></td><td></td></tr>
<tr><td colspan="2"><table><tr><td>inner</td><td>table</td></tr></table></td><td><b>9</b> kg</td></tr>
</table>
<pre><code>hive.open()
hive.close()</code></pre>
<figure><img src="hive.png" alt="a hive"><figcaption>A hive of <b>straw</b></figcaption></figure>
<p><img src="bee.png" alt="a bee"></p>
<dl><dt>Drone</dt><dd>a male bee</dd></dl>
<blockquote>Bees <code>dance</code>.</blockquote>
<details><summary>More</summary><p>Later.</p></details>
</body></html>"""

MARKDOWN = """# Hives

A **hive** is *a house* for [bees](https://bees.example/), says `hive.open()`.

1. Wood
   - Pine
   - Lime **tree**
     1. dry
2. Straw with a [link](https://straw.example/)

## Weights <text>

| Hive | **Weight** | |
| - | -: | - |
| East *by the pond* | 7 kg | `ok` |
| [West](https://west.example/) | | 9 |

```python
hive.open()
```

![A hive of straw](hive.png)

> Bees dance.

$$a^2 + b^2$$

<p>Raw <b>HTML</b></p>

***

Setext heading
---
"""


def _word(folder: Path) -> bytes:
    """A Word document with lists, runs, a link, a picture and a nested table."""
    import docx

    Image.new("RGB", (40, 30), "gold").save(folder / "hive.png")
    document = docx.Document()
    document.add_heading("Hives", level=0)
    document.add_heading("Weights", level=2)
    paragraph = document.add_paragraph("A ")
    paragraph.add_run("hive").bold = True
    paragraph.add_run(" is a ")
    paragraph.add_run("house").italic = True
    _link(paragraph, "for bees", "https://bees.example/")
    for style in ("List Bullet", "List Bullet 2", "List Number", "List Bullet"):
        item = document.add_paragraph("item of ", style=style)
        item.add_run(style).bold = True
    document.add_picture(str(folder / "hive.png"))
    document.add_paragraph("A hive of straw", style="Caption")
    _word_table(document.add_table(rows=4, cols=3))
    document.add_paragraph("hive.open()", style="macro")
    document.add_paragraph("")
    document.save(str(folder / "hives.docx"))
    return (folder / "hives.docx").read_bytes()


def _link(paragraph: Any, text: str, address: str) -> None:
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    link = OxmlElement("w:hyperlink")
    link.set(qn("r:id"), paragraph.part.relate_to(address, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
    link.append(paragraph.add_run(text)._r)
    paragraph._p.append(link)


def _word_table(table: Any) -> None:
    table.cell(0, 0).merge(table.cell(0, 1)).text = "Hive"
    table.cell(0, 2).merge(table.cell(1, 2)).text = "Weight"
    table.cell(2, 0).text = "1"
    rich = table.cell(2, 1)
    rich.text = "East"
    rich.add_paragraph("by the pond", style="List Bullet")
    rich.add_paragraph("").add_run("in the shade").bold = True
    inner = table.cell(3, 1).add_table(rows=1, cols=2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "inner", "table"


def _of_docling(name: str, content: bytes) -> str:
    from docling.datamodel.base_models import DocumentStream
    from docling.document_converter import DocumentConverter

    source = DocumentStream(name=name, stream=BytesIO(content))
    return DocumentConverter().convert(source).document.export_to_doctags()


@pytest.mark.parametrize(
    ("name", "text", "has_all_of"),
    [
        ("hives.html", HTML, ("<ched>Hive<lcel>", "<unordered_list>", "<caption>", "<inline>", "<code>")),
        ("hives.md", MARKDOWN, ("<otsl>", "<ordered_list>", "<unordered_list>", "<inline>", "<code>")),
    ],
)
def test_a_text_file_is_written_as_docling_writes_it(
    read: Read, name: str, text: str, has_all_of: tuple[str, ...]
):
    """Nested lists, tables with rich cells, runs, links, code, pictures with captions."""
    doctags = read(name, text.encode()).doctags

    assert doctags == _of_docling(name, text.encode())
    assert [tag for tag in has_all_of if tag not in doctags] == []


def test_a_word_document_is_written_as_docling_writes_it(read: Read, tmp_path: Path):
    """The same in an Office file."""
    content = _word(tmp_path)

    doctags = read("hives.docx", content).doctags

    assert doctags == _of_docling("hives.docx", content)
    assert [tag for tag in ("<otsl>", "_list>", "<inline>", "inner") if tag not in doctags] == []

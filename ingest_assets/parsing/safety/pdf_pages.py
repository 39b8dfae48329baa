"""Who draws whom in a PDF: pages whose content is damaged, and forms that draw each other without end."""

import re
from collections import Counter
from collections.abc import Mapping
from math import inf

from ingest_assets.parsing.errors import DecompressionBomb
from ingest_assets.parsing.safety.pdf_streams import PdfContents

MAX_DRAWINGS = 100_000  # of forms, for what one form draws
MAX_FORM_DEPTH = 50
_NAME = rb"/([^\s/\[\]<>(){}%]+)"
_REFERENCE = rb"(\d{1,10})\s+\d{1,5}\s+R\b"
_DRAWS = re.compile(_NAME + rb"\s+Do\b")
_ENTRY = re.compile(_NAME + rb"\s+" + _REFERENCE)
_ALL = re.compile(_REFERENCE)
_KIDS = re.compile(rb"/Kids\s*(?:\[([^\]]*)\]|" + _REFERENCE + rb")")
_CONTENTS = re.compile(rb"/Contents\s*(?:\[([^\]]*)\]|" + _REFERENCE + rb")")
_ROOT = re.compile(rb"/Type\s*/Catalog\b")
_PAGES = re.compile(rb"/Pages\s+" + _REFERENCE)


def damaged_pages(contents: PdfContents) -> tuple[list[int], int]:
    """Pages, from 1, of whose content nothing can be unpacked; and how many pages were found."""
    pages = _page_numbers(contents)
    return [at for at, number in enumerate(pages, 1) if _is_damaged(contents, number)], len(pages)


def _is_damaged(contents: PdfContents, page: int) -> bool:
    parts = _referred(_CONTENTS, contents.heads.get(page, b""), contents.heads)
    return bool(parts) and not any(
        part in contents.streams and part not in contents.damaged for part in parts
    )


def _page_numbers(contents: PdfContents) -> list[int]:
    """The object numbers of the pages in reading order, whatever loops the tree has."""
    roots = [head for head in contents.heads.values() if _ROOT.search(head)]
    top = _PAGES.search(roots[-1]) if roots else None
    waiting, seen, pages = [int(top[1])] if top else [], set[int](), list[int]()
    while waiting:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        head = contents.heads.get(number, b"")
        if _KIDS.search(head):
            waiting += reversed(_referred(_KIDS, head, contents.heads))
        elif number in contents.heads:
            pages.append(number)
    return pages


def _referred(key: re.Pattern[bytes], head: bytes, heads: Mapping[int, bytes]) -> list[int]:
    """The objects that an entry names: one, an array of them, or an object that is such an array."""
    found = key.search(head)
    if found is None:
        return []
    if found[1] is not None:
        return [int(number) for number in _ALL.findall(found[1])]
    inner = heads.get(int(found[2]), b"").strip()
    if inner.startswith(b"["):
        return [int(number) for number in _ALL.findall(inner)]
    return [int(found[2])]


def refuse_endless_drawing(contents: PdfContents) -> None:
    """Forms may draw forms; some are made to do so for ever, or a thousand million times."""
    drawn = {number: _drawn_by(number, contents) for number in contents.forms}
    counts: dict[int, float] = dict.fromkeys(drawn, 1.0)
    for _ in range(MAX_FORM_DEPTH):  # each round looks one level deeper
        deeper = {
            number: 1 + sum(times * counts.get(other, 0) for other, times in others.items())
            for number, others in drawn.items()
        }
        if deeper == counts:
            break
        counts = deeper
    else:
        counts = dict.fromkeys(drawn, inf)
    if any(count > MAX_DRAWINGS for count in counts.values()):
        raise DecompressionBomb(
            "The PDF draws its own parts within each other, endlessly or far too often; print it anew."
        )


def _drawn_by(form: int, contents: PdfContents) -> Counter[int]:
    """Which objects a form draws, and how often, by the names in its own resources."""
    names = Counter(_DRAWS.findall(contents.forms[form]))
    if not names:
        return Counter()
    known = {name: int(number) for name, number in _ENTRY.findall(_resources(form, contents.heads))}
    return Counter({known[name]: times for name, times in names.items() if name in known})


def _resources(form: int, heads: Mapping[int, bytes]) -> bytes:
    """Everything that the form's dictionary leads to in three steps: its resources may be shared."""
    text = heads.get(form, b"")
    for _ in range(3):
        indirect = [int(found[1]) for found in re.finditer(rb"/(?:Resources|XObject)\s+" + _REFERENCE, text)]
        text += b"".join(heads.get(number, b"") for number in indirect if heads.get(number, b"") not in text)
    return text

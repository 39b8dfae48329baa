"""Markup that goes down without end, as bombs do and as editors did that closed no element."""

import html
import re

from ingest_assets.parsing.errors import CorruptDocument

MAX_DEPTH = 200  # Docling walks elements by recursion; browsers stop at 512
FLATTENED = f"W_HTML_FLATTENED: elements more than {MAX_DEPTH} deep were taken out of those around them"
MAX_QUOTES = 100
_DEEP_QUOTE = re.compile(rf"^(?:[ \t]{{0,3}}>){{{MAX_QUOTES + 1}}}", re.MULTILINE)
_TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]*)")
_VOID = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "frame",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
        "command",
        "keygen",
    ]
)
_RAW = frozenset(("script", "style"))
_UNSEEN = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)


def refuse_deep_quotes(markdown: str) -> None:
    """Quotes within quotes: Markdown is read by recursion, and slower with each level."""
    if _DEEP_QUOTE.search(markdown):
        raise CorruptDocument(
            f"The file nests quotes more than {MAX_QUOTES} deep; save it in a simpler form."
        )


def is_too_deep(markup: str) -> bool:
    """True for what `flattened` is for. Tags in scripts and comments do not count."""
    return depth_of(markup) > MAX_DEPTH and depth_of(_UNSEEN.sub("", markup)) > MAX_DEPTH


def depth_of(markup: str) -> int:
    """How deep elements are nested for a parser that closes none by itself; never less than that."""
    open_tags: dict[str, list[int]] = {}
    depth = deepest = 0
    for closes, name in _TAG.findall(markup):
        name = name.lower()
        if not closes:
            if name not in _VOID:
                depth += 1
                open_tags.setdefault(name, []).append(depth)
                deepest = max(deepest, depth)
        elif positions := open_tags.get(name):
            while positions and positions[-1] > depth:  # closed along with an element around it
                positions.pop()
            if positions:
                depth = positions.pop() - 1
    return deepest


def flattened(markup: str) -> str:
    """The same HTML with every element closed where HTML closes it, and none deeper than the limit."""
    from lxml import etree

    target = _Shallow()
    parser = etree.HTMLParser(target=target, huge_tree=True, recover=True, remove_comments=True)
    parser.feed(markup)
    return str(parser.close())


class _Shallow:
    """What lxml calls while it reads; text of elements that are too deep stays, their tags go."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._depth = 0
        self._raw = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._raw += tag in _RAW
        if self._depth <= MAX_DEPTH and not self._raw:
            named = "".join(f' {name}="{html.escape(value or "")}"' for name, value in attributes.items())
            self._parts.append(f"<{tag}{named}>")

    def end(self, tag: str) -> None:
        if self._depth <= MAX_DEPTH and not self._raw and tag not in _VOID:
            self._parts.append(f"</{tag}>")
        self._raw -= tag in _RAW
        self._depth -= 1

    def data(self, text: str) -> None:
        if not self._raw:
            self._parts.append(html.escape(text, quote=False))

    def close(self) -> str:
        return "".join(self._parts)

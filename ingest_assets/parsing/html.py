"""Web pages without what stands around their text: menus, banners, margins, and what nobody sees."""

import codecs
import re
from typing import Any

MAX_BANNER_CHARS = 3000
MIN_LINK_SHARE = 0.6
_ASIDE = ("nav", "aside", "footer", "dialog", "menu")
_ASIDE_ROLES = frozenset(
    {"navigation", "complementary", "contentinfo", "search", "menu", "menubar", "dialog", "alertdialog"}
)
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_WORD = re.compile(r"[a-z]+")
_CONSENT = frozenset(
    {"cookie", "cookies", "cookiebar", "cookiebanner", "cookieconsent", "consent", "gdpr", "ccpa", "onetrust"}
    | {"cookiebot", "didomi", "usercentrics", "osano", "quantcast"}
)
_LINKS = frozenset(
    {"nav", "navbar", "navigation", "menu", "breadcrumb", "breadcrumbs", "sidebar", "skip", "share", "social"}
    | {"pagination", "pager", "toolbar", "related"}
)
# What authors write asides for that belong to the text.
_NOTES = frozenset(
    {"footnote", "footnotes", "endnote", "endnotes", "note", "notes", "citation", "abstract", "topic"}
    | {"admonition", "tip", "hint", "warning", "caution", "important", "danger", "callout", "example"}
)
_CONTENT = ("main", "article")
_KEPT = ("html", "body", "main", "article", "h1")


def without_clutter(content: bytes) -> bytes:
    """The page with nothing but its content; as it was when nothing would be left of it."""
    from bs4 import BeautifulSoup

    page = BeautifulSoup(content, "html.parser")
    for element in page.find_all(True):
        if not element.decomposed and element.name not in _KEPT and _is_clutter(element):
            element.decompose()
    body = page.body or page
    return (
        codecs.BOM_UTF8 + page.decode().encode("utf-8", "replace") if body.get_text(strip=True) else content
    )


def _is_clutter(element: Any) -> bool:
    role = str(element.get("role") or "").lower()
    if element.name == "aside" and _is_note(element, role):
        return False
    if element.name in _ASIDE or role in _ASIDE_ROLES or _is_hidden(element):
        return True
    if element.name == "header" or role == "banner":
        return not element.find_parent(_CONTENT) and not element.find("h1")
    words = _words(element)
    return bool(words & _CONSENT and _is_banner(element)) or bool(words & _LINKS and _is_links(element))


def _is_note(element: Any, role: str) -> bool:
    """Footnotes, tips and the like, and somebody can see them."""
    is_called_so = role == "note" or role.startswith("doc-") or bool(_words(element) & _NOTES)
    return is_called_so and not _is_hidden(element)


def _is_hidden(element: Any) -> bool:
    is_unseen = _HIDING.search(str(element.get("style") or "")) is not None
    return is_unseen or str(element.get("aria-hidden") or "").lower() == "true"


def _words(element: Any) -> set[str]:
    """What its author calls it."""
    named = element.get("class") or []
    classes = named if isinstance(named, list) else [named]
    return set(_WORD.findall(" ".join([*classes, str(element.get("id") or "")]).lower()))


def _is_banner(element: Any) -> bool:
    """About cookies, and no article about cookies."""
    return not element.find(["h1", *_CONTENT]) and len(element.get_text(strip=True)) <= MAX_BANNER_CHARS


def _is_links(element: Any) -> bool:
    """Called a menu, and mostly links."""
    text = len(element.get_text(strip=True))
    links = sum(len(link.get_text(strip=True)) for link in element.find_all("a"))
    return not element.find("h1") and links >= MIN_LINK_SHARE * text

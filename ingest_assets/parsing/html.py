"""Removes menus, banners, sidebars and hidden elements from web pages.

Imported only in processes that read documents.
"""

import codecs
import re
from typing import Any

from bs4 import BeautifulSoup

MAX_BANNER_CHARS = 3000  # a longer text about cookies is an article
MIN_LINK_SHARE = 0.6  # of the characters; an element only named like a menu has fewer links
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
# Names of asides that belong to the text.
_NOTES = frozenset(
    {"footnote", "footnotes", "endnote", "endnotes", "note", "notes", "citation", "abstract", "topic"}
    | {"admonition", "tip", "hint", "warning", "caution", "important", "danger", "callout", "example"}
)
_CONTENT = ("main", "article")
_KEPT = ("html", "body", "main", "article", "h1")

# Compiling the first CSS selector takes 0.14 s; at import, forked workers share it.
BeautifulSoup("", "html.parser").select("p:has(p)")


def without_clutter(content: bytes) -> bytes:
    """Return the page with only its main content; unchanged if no text would be left."""
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
    classes = element.get("class") or []
    names = [*(classes if isinstance(classes, list) else [classes]), str(element.get("id") or "")]
    words = set(_WORD.findall(" ".join(names).lower()))
    is_unseen = _HIDING.search(str(element.get("style") or "")) is not None
    is_hidden = is_unseen or str(element.get("aria-hidden") or "").lower() == "true"
    is_note = role == "note" or role.startswith("doc-") or bool(words & _NOTES)
    if element.name == "aside" and is_note and not is_hidden:
        return False  # visible footnotes, tips and similar
    if element.name in _ASIDE or role in _ASIDE_ROLES or is_hidden:
        return True
    if element.name == "header" or role == "banner":
        return not element.find_parent(_CONTENT) and not element.find("h1")
    if not words & (_CONSENT | _LINKS) or element.find("h1"):
        return False
    chars = len(element.get_text(strip=True))
    if words & _CONSENT and chars <= MAX_BANNER_CHARS and not element.find(_CONTENT):
        return True  # a cookie banner
    links = sum(len(link.get_text(strip=True)) for link in element.find_all("a"))
    return bool(words & _LINKS) and links >= MIN_LINK_SHARE * chars

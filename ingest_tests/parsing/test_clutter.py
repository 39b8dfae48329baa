"""What is kept of a web page: everything, what Docling keeps, or its main content."""

import json

import pytest

from ingest_assets.parsing.html import without_clutter
from ingest_assets.parsing.reader import DocumentReader
from ingest_assets.settings.parsing import HtmlMode, ParsingOptions
from ingest_tests.parsing.conftest import Read

PAGE = """<html><head><title>Hives</title></head><body>
<header><a href="/">Apiary</a> banner</header>
<nav><ul><li><a href="/a">menu one</a></li></ul></nav>
<div id="cookie-banner"><p>We use biscuits. <button>Accept</button></p></div>
<p>Before the heading.</p>
<main><article><header><h1>Swarms</h1><p>By Ada</p></header>
<p>They leave in May.</p><p style="display: none">unseen style</p><span aria-hidden="true">unseen icon</span>
<div class="breadcrumbs"><a href="/">crumb</a></div>
<div class="menu">A menu of three dishes, none of them a link.</div>
<p class="cookie-policy">Cookies are baked at noon.</p>
<aside>margin note</aside><h2>Why</h2><p>There is no room.</p></article></main>
<footer>imprint</footer></body></html>"""
CLUTTER = ("banner", "menu one", "biscuits", "unseen style", "unseen icon", "crumb", "margin note", "imprint")
CONTENT = ("Swarms", "By Ada", "They leave in May.", "three dishes", "Why", "There is no room.")


def _body(read: Read, mode: HtmlMode, page: str = PAGE) -> str:
    """The text of the page's body, without furniture."""
    found = read("page.html", page.encode(), DocumentReader(ParsingOptions(html=mode), threads=1))
    texts = json.loads(found.document)["texts"]
    return "\n".join(text["text"] for text in texts if text["content_layer"] == "body")


def test_strict_keeps_the_main_content(read: Read) -> None:
    """It drops menus, banners, margins and hidden elements."""
    body = _body(read, "strict")
    assert [text for text in CLUTTER if text in body] == []
    assert [text for text in CONTENT if text not in body] == []


def test_balanced_keeps_what_docling_keeps(read: Read) -> None:
    """Text before the first heading and footers are furniture; nothing else is lost."""
    body = _body(read, "balanced")
    assert "Before the heading." not in body
    assert [text for text in (*CONTENT, "margin note", "Cookies are baked") if text not in body] == []


def test_permissive_keeps_everything(read: Read) -> None:
    """Also text before the first heading, such as menus and banners."""
    body = _body(read, "permissive")
    wanted = (*CONTENT, "Before the heading.", "menu one", "biscuits")
    assert [text for text in wanted if text not in body] == []


def test_the_hash_is_that_of_the_original_file(read: Read) -> None:
    """Removed elements do not change it."""
    modes: tuple[HtmlMode, ...] = ("strict", "balanced")
    readers = [DocumentReader(ParsingOptions(html=mode), threads=1) for mode in modes]
    origins = [json.loads(read("page.html", PAGE.encode(), each).document)["origin"] for each in readers]
    assert origins[0] == origins[1]


def test_a_heading_in_the_pages_header_is_kept() -> None:
    """Many pages have their title there."""
    page = b"<body><header><nav>menu</nav><h1>Swarms</h1></header><p>Text.</p></body>"
    kept = without_clutter(page)
    assert b"Swarms" in kept
    assert b"menu" not in kept


def test_a_page_of_only_clutter_is_kept() -> None:
    """A menu is better than an empty page."""
    page = b"<html><body><nav>All there is</nav></body></html>"
    assert without_clutter(page) == page


def test_an_article_about_cookies_is_no_banner() -> None:
    """It has a heading, or is long."""
    page = b"<body><div class='post cookie'><h1>Cookies</h1><p>Bake them.</p></div></body>"
    assert b"Bake them." in without_clutter(page)


@pytest.mark.parametrize("attribute", ['class="nav"', 'id="sidebar"', 'class="social share"'])
def test_an_element_named_like_a_menu_is_dropped_only_if_it_is_mostly_links(attribute: str) -> None:
    """Names are only hints."""
    links = f"<body><h1>T</h1><div {attribute}><a href='#'>one</a> <a href='#'>two</a></div><p>x</p></body>"
    prose = f"<body><h1>T</h1><div {attribute}>Prose with <a href='#'>one</a> link in it.</div></body>"
    assert b"two" not in without_clutter(links.encode())
    assert b"Prose with" in without_clutter(prose.encode())


@pytest.mark.parametrize(
    "attributes",
    [
        'class="footnote brackets" role="note"',
        'role="doc-footnote"',
        'class="admonition tip"',
        'class="topic"',
    ],
)
def test_notes_of_the_text_are_kept(attributes: str) -> None:
    """Documentation tools write footnotes, tips and abstracts as asides."""
    page = f"<body><h1>T</h1><aside {attributes}>Feed them in time.</aside><aside>Buy now!</aside></body>"
    kept = without_clutter(page.encode())
    assert b"Feed them in time." in kept
    assert b"Buy now!" not in kept
    assert b"Feed" not in without_clutter(page.replace("<aside ", "<aside aria-hidden='true' ").encode())

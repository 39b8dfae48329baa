"""Markers at the start of lines: bullets, enumerations, section numbers, captions."""

import re

BULLET = "•"
_BULLETS = "•‣◦⁃⁌⁍∙▪▫●○◆◇■□►▶▸➤➢➔✓✔✗✘❖·⋄⬧⁎∗"
_BULLET = re.compile(rf"[{_BULLETS}](?=\s|$)|[-–—*+](?=\s\S)")
_ENUMERATION = re.compile(
    r"(?:\(?\d{1,3}[.)]|\(\d{1,3}\.?[a-z]?\)|\[\d{1,4}\]|\(?[a-zA-Z][.)]|\(?[ivxIVX]{1,5}[.)]|\d{1,2}\.\d{1,2}[.)])(?=\s\S)"
)
_NUMBER = re.compile(
    r"(?:(?:chapter|section|appendix|part|article|kapitel|anhang|teil|abschnitt)\s+)?"
    r"(?:[A-Z]|\d{1,2}|[IVXLC]{1,6})(?:[.\-]\d{1,2})*\.?(?=\s)",
    re.IGNORECASE,
)
_CAPTION = re.compile(
    r"(?P<name>[A-Z][a-z]+|[A-Z]+)\b\.?\s*(?:[A-Z]?[-.]?\d+(?:[-.–]\w+)*|[IVXLC]+\b|[A-Z]\b)\s*"
    r"(?P<end>[:.|–—)]|$|(?=\s\S))"
)
_CAPTION_NAMES = frozenset(
    [
        "figure",
        "fig",
        "table",
        "tab",
        "listing",
        "algorithm",
        "scheme",
        "plate",
        "chart",
        "abbildung",
        "abb",
        "tabelle",
        "tableau",
        "figura",
        "tabla",
        "exhibit",
        "box",
        "photo",
        "video",
        "image",
        "map",
        "diagram",
    ]
)


def bullet_of(text: str) -> str:
    """Return the bullet that a line begins with, else ''."""
    match = _BULLET.match(text.lstrip())
    return match[0] if match else ""


def enumeration_of(text: str) -> str:
    """Return the counter that a line begins with, such as `1.`, `(a)` or `[12]`, else ''."""
    match = _ENUMERATION.match(text.lstrip())
    return match[0] if match else ""


def section_number_of(text: str) -> str:
    """Return the section number that a line begins with, such as `3`, `2.1` or `A.`, else ''."""
    match = _NUMBER.match(text.lstrip())
    return match[0] if match else ""


def caption_of(text: str) -> str:
    """Return the start of a caption, such as `Figure 3:`, else ''.

    Without punctuation after the number, a capital or the end of the line is required, which distinguishes
    `Table 2 Results` from `Table 2 shows`.
    """
    stripped = text.lstrip()
    match = _CAPTION.match(stripped)
    if not match or match["name"].lower() not in _CAPTION_NAMES:
        return ""
    rest = stripped[match.end() :].lstrip()
    return match[0] if match["end"] or not rest or rest[0].isupper() else ""

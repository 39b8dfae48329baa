"""How lines begin: bullets, enumerations, section numbers, captions."""

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
    """The bullet that a line begins with; empty if it begins with none."""
    found = _BULLET.match(text.lstrip())
    return found[0] if found else ""


def enumeration_of(text: str) -> str:
    """The counter that a line begins with, as in `1.`, `(a)` or `[12]`; empty if there is none."""
    found = _ENUMERATION.match(text.lstrip())
    return found[0] if found else ""


def section_number_of(text: str) -> str:
    """The section number that a line begins with, as in `3`, `2.1` or `A.`; empty if there is none."""
    found = _NUMBER.match(text.lstrip())
    return found[0] if found else ""


def caption_of(text: str) -> str:
    """The start of a caption, as in `Figure 3:`; empty if a line does not begin like one.

    Without a sign after its number, it takes a capital or the end of the line to tell `Table 2 Results` from
    `Table 2 shows`.
    """
    stripped = text.lstrip()
    found = _CAPTION.match(stripped)
    if not found or found["name"].lower() not in _CAPTION_NAMES:
        return ""
    rest = stripped[found.end() :].lstrip()
    return found[0] if found["end"] or not rest or rest[0].isupper() else ""

"""A font's style by its name. There is no standard for names, only the conventions of foundries."""

import re
from dataclasses import dataclass
from functools import lru_cache

_SUBSET = re.compile(r"^/?(?:[A-Z]{6}\+)?")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|\d+")
_BOLD = frozenset(
    ["bold", "black", "heavy", "demi", "medi", "semibold", "demibold", "extrabold", "ultrabold", "fett"]
)
_BOLD_ENDINGS = frozenset(["b", "bd", "bi", "bdit", "blk", "sb"])  # only as a whole part after a hyphen
_ITALIC = frozenset(["italic", "ital", "oblique", "slanted", "slant", "kursiv", "inclined"])
_ITALIC_ENDINGS = frozenset(["i", "it", "ita", "bi", "bdit", "obl"])
_MONO = frozenset(
    ["mono", "courier", "consolas", "menlo", "monaco", "typewriter", "teletype", "fixed", "console", "code"]
)
_MONO_NAMES = re.compile(r"cm(?:sl|i)?tt|sf?tt\d|ectt|x?tt$|nimbusmon|inconsolata|andale|lettergothic|mono")
_SYMBOL_NAMES = re.compile(r"^(?:standard)?sym|^wingdings|^webdings|dingbats|^pzdr|^opensym|^marvosym")
_MATH_NAMES = re.compile(
    r"^(?:cm(?:mi|sy|ex|bsy)|ms[ab]m|eu[fsr][mb]|rsfs|stmary|wasy|mt(?:mi|sy|ex)|r?n?(?:ew)?[tp]xb?(?:mi|sy|ex))"
    r"|math"
)
# Computer Modern fonts encode the shape in their first letters: bold extended, text italic, slanted.
_TEX_BOLD = re.compile(r"^(?:cm|sf|ec)(?:ss)?(?:b[xi]?\d|bx|xc|bl|so|sx)")
_TEX_ITALIC = re.compile(r"^(?:cm|sf|ec)(?:ti|sl|bxti|bxsl|bi|ssi)\d")
# Names of Libertine fonts end in T(ext), then B(old) or Z (semibold), then I(talic).
_LIBERTINE = re.compile(r"^lin(?:libertine|biolinum)\w*?t(?P<shape>[bz]?i?)$")


@dataclass(frozen=True, slots=True)
class FontStyle:
    """Weight, slant and kind of a font."""

    bold: bool = False
    italic: bool = False
    mono: bool = False
    symbol: bool = False
    math: bool = False


@lru_cache(maxsize=4096)
def font_style(name: str) -> FontStyle:
    """Return the style that a font's name indicates; plain if it indicates none."""
    plain = _SUBSET.sub("", name or "")
    joined = re.sub(r"[^A-Za-z0-9]", "", plain).lower()
    words = {part.lower() for part in _PARTS.findall(plain)}
    endings = {part.lower() for part in re.split(r"[-,_ ]+", plain)[1:]}
    libertine = _LIBERTINE.match(joined)
    shape = libertine["shape"] if libertine else ""
    bold = words & _BOLD or endings & _BOLD_ENDINGS or _TEX_BOLD.match(joined) or shape[:1] in ("b", "z")
    italic = words & _ITALIC or endings & _ITALIC_ENDINGS or _TEX_ITALIC.match(joined) or "i" in shape
    return FontStyle(
        bold=bool(bold),
        italic=bool(italic),
        mono=bool(words & _MONO or _MONO_NAMES.search(joined)),
        symbol=bool(_SYMBOL_NAMES.search(joined)),
        math=bool(_MATH_NAMES.search(joined)),
    )

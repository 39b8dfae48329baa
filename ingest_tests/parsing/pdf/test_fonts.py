import pytest

from ingest_assets.parsing.pdf.fonts import font_style


@pytest.mark.parametrize(
    "name",
    [
        "/ABCDEF+TimesNewRomanPS-BoldMT",
        "/CMBX12",
        "/AAAAAD+SFBX1000",
        "/LinLibertineTB",
        "/NimbusRomNo9L-Medi",
        "/HelveticaNeueLTPro-Bd",
        "/LMRomanDemi10-Regular",
    ],
)
def test_bold_fonts_are_known_by_their_names(name: str) -> None:
    """Foundries have different conventions."""
    assert font_style(name).bold


@pytest.mark.parametrize(
    "name", ["/CMR10", "/LinLibertineT", "/Times-Roman", "/F1", "/Bookman-Light", "/Albany", "/Cambria", ""]
)
def test_other_fonts_are_not_bold(name: str) -> None:
    """A letter B in a name does not mean bold."""
    assert not font_style(name).bold


@pytest.mark.parametrize(
    "name", ["/CMTI10", "/Times-Italic", "/LinLibertineTI", "/URWPalladioL-Ital", "/X-BoldOblique"]
)
def test_italic_fonts_are_known_by_their_names(name: str) -> None:
    """Slanted fonts count as italic."""
    assert font_style(name).italic


@pytest.mark.parametrize(
    "name", ["/CMTT9", "/Courier", "/Inconsolatazi4-Regular", "/newtxtt", "/DejaVuSansMono", "/SFTT1000"]
)
def test_monospaced_fonts_are_known_by_their_names(name: str) -> None:
    """Program text uses them."""
    assert font_style(name).mono


def test_symbol_fonts_and_math_fonts_are_distinguished() -> None:
    """Bullets use the former, formulas the latter."""
    assert font_style("/AAAAAH+SymbolMT").symbol
    assert font_style("/Wingdings-Regular").symbol
    assert font_style("/CMMI10").math
    assert font_style("/STIXTwoMath").math
    assert not font_style("/CMR10").math

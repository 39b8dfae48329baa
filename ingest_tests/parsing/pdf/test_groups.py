from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.lines import Word
from ingest_tests.parsing.pdf.elements import word
from ingest_tests.parsing.pdf.test_rivers import _table


def _row(y: float, *texts: str, left: float = 100) -> list[Word]:
    return [
        word(left + 60 * at, y, 6.0 * len(text), text, height=10) for at, text in enumerate(texts) if text
    ]


def _across(y: float) -> Box:
    return Box(5, y, 320, y + 0.5)


def test_a_label_between_rows_spans_all_of_them() -> None:
    """It is centred on two or four rows between two lines."""
    words = [word(10, 4, 40, "Dataset"), *_row(4, "Method", "F1", "mAP")]
    words += [word(10, 26, 30, "COCO"), *_row(20, "EDD", "61.5", "70.1"), *_row(32, "GTE", "68.2", "74.9")]
    words += [word(10, 62, 30, "SQuAD")]
    for at, name in enumerate(("Ours", "LSTM", "SVM", "Base")):
        words += _row(44 + 12.0 * at, name, "57.0", "82.4")
    rows = _table(words)
    assert [row[:2] for row in rows[1:]] == [
        *(["COCO", name] for name in ("EDD", "GTE")),
        *(["SQuAD", name] for name in ("Ours", "LSTM", "SVM", "Base")),
    ]


def test_a_text_beside_two_lines_of_one_cell_is_in_their_row() -> None:
    """Browsers centre short cells vertically in tall rows."""
    words = [*_row(10, "Feature", "A", "B", left=10), *_row(34, "Nothing", "yes", "no", left=10)]
    words += [word(10, 58, 40, "Long"), *_row(64, "", "yes", "yes", left=10), word(10, 70, 40, "name")]
    words += [*_row(94, "Last", "no", "no", left=10), *_row(118, "Very", "no", "yes", left=10)]
    assert ["Long name", "yes", "yes"] in _table(words)


def test_numbers_below_numbers_are_rows_at_any_distance() -> None:
    """Space between groups of rows does not merge a group."""
    words = []
    for group, top in enumerate((10, 60, 110)):
        words += _row(top, f"Set{group}", "61.5", "70.1", left=10)
        words += _row(top + 12, "", "63.5", "72.1", left=10) + _row(top + 24, "", "67.5", "77.1", left=10)
    assert len(_table(words)) == 9


def test_wrapped_text_is_one_row_without_lines() -> None:
    """LaTeX sets wrapped lines and rows at the same distance."""
    words = [*_row(10, "Term", left=10), word(80, 10, 60, "Meaning"), word(200, 10, 40, "Remark")]
    for at, name in enumerate(("First", "Second", "Third")):
        y = 26 + 36.0 * at
        words += [word(10, y, 35, name), word(80, y, 50, "Some"), word(133, y, 50, "words")]
        words += [word(200, y, 60, "Noted"), word(80, y + 12, 48, "that"), word(131, y + 12, 52, "are")]
        words += [word(200, y + 12, 30, "here"), word(80, y + 24, 40, "wrapped")]
    rows = _table(words, _across(4), _across(22), _across(136))
    assert rows[1:] == [
        [name, "Some words that are wrapped", "Noted here"] for name in ("First", "Second", "Third")
    ]


def test_a_line_under_most_of_a_heading_does_not_join_the_rows_below() -> None:
    """It omits the cell that spans both rows of the heading."""
    words = [word(10, 16, 30, "Model"), *_row(10, "SQuAD", "", "COCO"), *_row(24, "F1", "mAP", "F1")]
    for at, name in enumerate(("EDD", "GTE", "SVM", "Ours")):
        words += [word(10, 44 + 14.0 * at, 30, name), *_row(44 + 14.0 * at, "59.3", "65.5", "83.4")]
    rows = _table(words, _across(4), Box(95, 38, 260, 38.5), _across(104))
    assert [row[0] for row in rows[-4:]] == ["EDD", "GTE", "SVM", "Ours"]


def test_lines_under_words_are_no_lines_of_the_table() -> None:
    """Links are underlined."""
    words = [word(10, 14.0 * at, 40, f"Name{at}") for at in range(1, 7)]
    words += [word(120, 14.0 * at, 40, "Stable") for at in range(1, 7)]
    links = [Box(10, 14.0 * at + 8.5, 50, 14.0 * at + 9) for at in range(1, 7)]
    assert _table(words, *links) == [[f"Name{at}", "Stable"] for at in range(1, 7)]

"""Documents for reading benchmarks: generated articles in four formats, or a folder of the user's."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from ingest_tests.bench.figures import Size
from ingest_tests.parsing.pdf.papers import WIDTH, WORDS, Sheet, paper

_LENGTHS = (1, 2, 3, 4)  # sections or pages
_EACH = {"html": 25, "md": 25, "docx": 10, "pdf": 3}


def documents_of(kinds: Sequence[str], size: Size, folder: Path) -> list[Path]:
    """Return files of these kinds from the corpus, or generate them in `folder`."""
    if size.corpus is not None:
        return files_below(size.corpus, kinds, size)
    made = []
    for kind in kinds:
        for number in range(size.of(_EACH[kind])):
            for length in _LENGTHS:
                made.append(folder / f"article-{number}-{length}.{kind}")
                _MAKERS[kind](made[-1], 7 * number + length, length)
    return made


def files_below(root: Path, kinds: Sequence[str], size: Size) -> list[Path]:
    """Return files of each kind, scaled by the size, so that a small run still has all kinds."""
    return sorted(path for kind in kinds for path in size.some(sorted(root.rglob(f"*.{kind}"))))


def long_document(folder: Path, pages: int) -> Path:
    """Write a PDF with this number of pages that is large enough to count as long."""
    path = folder / "long.pdf"
    _pdf(path, 1, pages)
    path.write_bytes(path.read_bytes() + b"\n%" + b"x" * 100_000)
    return path


def _markdown(path: Path, seed: int, sections: int) -> None:
    path.write_text("\n\n".join(_markdown_section(seed, at) for at in range(sections)), encoding="utf-8")


def _markdown_section(seed: int, at: int) -> str:
    rows = "\n".join(f"| {row} | {_sentence(seed + row, 4)} | {row * seed} |" for row in range(6))
    points = "\n".join(f"- **{_sentence(seed + at + row, 3)}** {_sentence(row, 9)}" for row in range(4))
    body = "\n\n".join(_sentence(seed + at * 11 + row, 70) for row in range(3))
    return f"## {_title(seed, at)}\n\n{body}\n\n{points}\n\n| no | what | sum |\n|---|---|---|\n{rows}"


def _html(path: Path, seed: int, sections: int) -> None:
    inner = "".join(_html_section(seed, at) for at in range(sections))
    path.write_text(f"<html><body><h1>{_title(seed, 0)}</h1>{inner}</body></html>", encoding="utf-8")


def _html_section(seed: int, at: int) -> str:
    rows = "".join(
        f"<tr><td>{row}</td><td><b>{_sentence(seed + row, 4)}</b></td><td>{row * seed}</td></tr>"
        for row in range(6)
    )
    points = "".join(
        f'<li>{_sentence(row, 9)} <a href="/{row}">{_sentence(row, 2)}</a></li>' for row in range(4)
    )
    body = "".join(f"<p>{_sentence(seed + at * 11 + row, 70)}</p>" for row in range(3))
    return f"<h2>{_title(seed, at)}</h2>{body}<ul>{points}</ul><table>{rows}</table>"


def _docx(path: Path, seed: int, sections: int) -> None:
    import docx as word

    document = word.Document()
    for at in range(sections):
        document.add_heading(_title(seed, at), level=1)
        for row in range(3):
            document.add_paragraph(_sentence(seed + at * 11 + row, 70))
        for row in range(4):
            document.add_paragraph(_sentence(row, 9), style="List Bullet")
        table = document.add_table(rows=6, cols=3)
        for row, cells in enumerate(table.rows):
            for cell, text in zip(cells.cells, (str(row), _sentence(row, 4), str(row * seed)), strict=True):
                cell.text = text
    document.save(str(path))


def _pdf(path: Path, seed: int, pages: int) -> None:
    path.write_bytes(paper(*(partial(_page, seed=seed, at=at) for at in range(pages))))


def _page(sheet: Sheet, seed: int, at: int) -> None:
    sheet.text(60, 50, _title(seed, at), "Times-Bold", 14)
    end = sheet.prose(60, 80, WIDTH - 120, 20, seed + at)
    for row in range(8):
        top = end + 30 + 16 * row
        sheet.rule(60, top, WIDTH - 60, top)
        for column, text in enumerate((str(row), _sentence(seed + row, 3), str(row * seed))):
            sheet.text(64 + 160 * column, top + 3, text)
    sheet.rule(60, end + 158, WIDTH - 60, end + 158)
    sheet.prose(60, end + 180, WIDTH - 120, 16, seed + at + 5)


def _title(seed: int, at: int) -> str:
    return f"{at + 1} {_sentence(seed + at, 5).capitalize()}"


def _sentence(seed: int, words: int) -> str:
    return " ".join(WORDS[(seed + 3 * at) % len(WORDS)] for at in range(words))


_MAKERS: Mapping[str, Callable[[Path, int, int], None]] = {
    "html": _html,
    "md": _markdown,
    "docx": _docx,
    "pdf": _pdf,
}


def mixed_documents(folder: Path, count: int, lengths: Sequence[int] = _LENGTHS) -> list[Path]:
    """Write documents into one folder: Markdown, HTML, and some PDFs of one page."""
    folder.mkdir(parents=True)
    made = []
    for number in range(count):
        kind = "pdf" if number % 50 == 49 else "html" if number % 2 else "md"
        made.append(folder / f"{number:05}.{kind}")
        _MAKERS[kind](made[-1], 7 * number + 3, 1 if kind == "pdf" else lengths[number // 2 % len(lengths)])
        if kind != "pdf":  # the same words in another order would be a duplicate
            with made[-1].open("a", encoding="utf-8") as file:
                file.write(f"\n\nReport number {number} of the association.\n")
    return made

"""No document makes a reader open a connection or another file."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest_tests.conftest import clean_environment
from ingest_tests.fuzz.markup_seeds import JATS
from ingest_tests.fuzz.seeds import seeds
from ingest_tests.parsing.hostile import archives, markup

SEEDS = seeds()
_MAIL = "From: ada@example.org\nSubject: Hives\nContent-Type: text/html; charset=utf-8\n\n"
# Reads every document of a folder twice. The second time, when all libraries are loaded, an audit hook
# records opened files, connections and started programs.
READ_ALL = """
import json, sys
from pathlib import Path

seen = {"open": [], "connect": [], "start": []}
kinds = {
    "open": "open", "os.listdir": "open", "socket.connect": "connect", "socket.getaddrinfo": "connect",
    "socket.gethostbyname": "connect", "urllib.Request": "connect", "subprocess.Popen": "start",
    "os.system": "start", "os.exec": "start", "os.posix_spawn": "start", "os.fork": "start",
}
is_on = False

def hear(event, arguments):
    if is_on and event in kinds:
        seen[kinds[event]].append(" ".join(map(str, arguments[:2])))

sys.addaudithook(hear)
from ingest_assets.settings.parsing import ParsingOptions
from ingest_assets.parsing.media import media_type
from ingest_assets.parsing.reader import DocumentReader

folder = Path(sys.argv[1])
reader = DocumentReader(ParsingOptions(), threads=1)
found = {}
for is_second in (False, True):
    for path in sorted(folder.iterdir()):
        mime = media_type(path.name, path.read_bytes()[:8192])
        is_on = is_second
        found[path.name] = reader.read(path, path.name, mime).doctags
        is_on = False
print(json.dumps({"seen": seen, "found": found}))
"""


@pytest.fixture(scope="module")
def listener() -> Iterator[tuple[str, list[bytes]]]:
    """A local server, and the requests it received."""
    asked: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve, args=(server, asked), daemon=True).start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}/picture.png", asked
    server.close()


def _serve(server: socket.socket, asked: list[bytes]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        asked.append(connection.recv(1024))
        connection.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, listener: tuple[str, list[bytes]]) -> dict[str, Any]:
    """The effects of reading documents with external references."""
    root = tmp_path_factory.mktemp("fetching")
    folder, user = root / "documents", root / "user"
    folder.mkdir()
    user.mkdir()
    canary = root / "kept-elsewhere.png"
    canary.write_bytes(b"CANARY")
    for at, uri in enumerate((listener[0], canary.as_uri(), str(canary), "../kept-elsewhere.png")):
        _write_documents(folder, at, uri)
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, str(folder)],
        env=clean_environment() | {"HOME": str(user), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    written = sorted(str(path.relative_to(user)) for path in user.rglob("*") if path.is_file())
    return json.loads(done.stdout) | {"written": written}


def _write_documents(folder: Path, number: int, uri: str) -> None:
    """One document of each format that can refer to an image or another file."""
    page = markup.resources(uri)
    texts = {
        "html": page,
        "md": f"# T\n\nBees ![a]({uri}) <img src='{uri}'>\n\n<div><img src='{uri}'></div>\n",
        "adoc": f"= T\n\nBees\n\nimage::{uri}[a]\n\ninclude::{uri}[]\n",
        "tex": rf"\documentclass{{article}}\begin{{document}}Bees \input{{{uri}}} \include{{{uri}}} "
        rf"\includegraphics{{{uri}}}\end{{document}}",
        "eml": _MAIL + page,
        "nxml": markup.with_external_entity(JATS.replace("file:///etc/hostname", uri), uri),
    }
    for suffix, text in texts.items():
        (folder / f"{number}.{suffix}").write_text(text, encoding="utf-8")
    archived = {
        "epub": _book(page, uri),
        "docx": _office("docx", "word/document.xml", "</w:body>", _DRAWN_IN_WORD, uri),
        "pptx": _office("pptx", "ppt/slides/slide1.xml", "</p:spTree>", _DRAWN_ON_SLIDES, uri),
        "xlsx": _workbook(uri),
        "odt": _open_document("odt", "</office:text>", uri),
        "odp": _open_document("odp", "</draw:page>", uri),
        "ods": _open_document("ods", "</table:table>", uri),
    }
    for suffix, content in archived.items():
        (folder / f"{number}.{suffix}").write_bytes(content)


def _book(page: str, uri: str) -> bytes:
    """A book with an external chapter."""
    parts = archives.members_of(archives.epub(page))
    more = f'<item id="x" href="{uri}" media-type="application/xhtml+xml"/></manifest>'
    spine = b'<itemref idref="x"/></spine>'
    package = parts["a.opf"].replace(b"</manifest>", more.encode()).replace(b"</spine>", spine)
    return archives.archive(parts | {"a.opf": package})


_RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_BLIP = (
    '<a:blip xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    f'xmlns:r="{_RELATED}" r:link="rXimage"/>'
)
_DRAWN_IN_WORD = f"<w:p><w:r><w:drawing>{_BLIP}</w:drawing></w:r></w:p>"
_DRAWN_ON_SLIDES = (
    '<p:pic><p:nvPicPr><p:cNvPr id="99" name="x"/><p:cNvPicPr/><p:nvPr/></p:nvPicPr>'
    f"<p:blipFill>{_BLIP}</p:blipFill><p:spPr/></p:pic>"
)


def _office(suffix: str, part: str, before: str, asks: str, uri: str) -> bytes:
    """An Office document with external image, template, video and object."""
    parts = archives.members_of(SEEDS[suffix][0])
    more = "".join(
        f'<Relationship Id="rX{name}" Type="{_RELATED}/{name}" Target="{uri}" TargetMode="External"/>'
        for name in ("image", "attachedTemplate", "oleObject", "hyperlink", "video")
    )
    folder, name = part.rsplit("/", 1)
    rels = f"{folder}/_rels/{name}.rels"
    changed = {
        rels: parts[rels].replace(b"</Relationships>", more.encode() + b"</Relationships>"),
        part: parts[part].replace(before.encode(), (asks + before).encode()),
    }
    assert all(changed[name] != parts[name] for name in changed)
    return archives.archive(parts | changed)


def _workbook(uri: str) -> bytes:
    """A workbook that refers to another one."""
    parts = archives.members_of(SEEDS["xlsx"][0])
    link = "xl/externalLinks/externalLink1.xml"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.externalLink+xml"
    refers = f"<externalReferences><externalReference xmlns:r='{_RELATED}' r:id='rX'/></externalReferences>"
    changes = (
        ("[Content_Types].xml", "</Types>", f"<Override PartName='/{link}' ContentType='{kind}'/>"),
        (
            "xl/_rels/workbook.xml.rels",
            "</Relationships>",
            f"<Relationship Id='rX' Type='{_RELATED}/externalLink' Target='/{link}'/>",
        ),
        ("xl/workbook.xml", "<definedNames", refers),
    )
    for part, before, more in changes:
        assert before.encode() in parts[part]
        parts[part] = parts[part].replace(before.encode(), (more + before).encode(), 1)
    book = f"<externalBook xmlns:r='{_RELATED}' r:id='r1'/>"
    parts[link] = f"<externalLink xmlns='{main}'>{book}</externalLink>".encode()
    parts["xl/externalLinks/_rels/externalLink1.xml.rels"] = (
        "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'><Relationship "
        f"Id='r1' Type='{_RELATED}/externalLinkPath' Target='{uri}' TargetMode='External'/></Relationships>"
    ).encode()
    return archives.archive(parts)


def _open_document(suffix: str, before: str, uri: str) -> bytes:
    """An OpenDocument file with external image and object."""
    parts = archives.members_of(SEEDS[suffix][0])
    frame = (
        "<draw:frame xmlns:xlink='http://www.w3.org/1999/xlink' svg:width='1cm' svg:height='1cm'>"
        f"<draw:image xlink:href='{uri}'/><draw:object xlink:href='{uri}'/></draw:frame>"
    )
    wrapped = {"odt": f"<text:p>{frame}</text:p>", "ods": f"<table:shapes>{frame}</table:shapes>"}
    content = parts["content.xml"].replace(before.encode(), (wrapped.get(suffix, frame) + before).encode())
    assert content != parts["content.xml"]
    return archives.archive(parts | {"content.xml": content})


def test_all_documents_are_read(report: dict[str, Any]) -> None:
    """Without the external content."""
    texts = report["found"]
    assert len(texts) == 4 * 13
    words = ("Bees", "kilograms", "Swarms", "A1")
    assert all(any(word in text for word in words) for text in texts.values())


def test_no_connection_is_opened(report: dict[str, Any], listener: tuple[str, list[bytes]]) -> None:
    """And no name is resolved."""
    assert report["seen"]["connect"] == []
    assert listener[1] == []


def test_no_program_is_started(report: dict[str, Any]) -> None:
    """Neither for images nor for formulas."""
    assert report["seen"]["start"] == []


def test_no_other_file_is_opened(report: dict[str, Any]) -> None:
    """Its content is in no text."""
    assert [opened for opened in report["seen"]["open"] if "kept-elsewhere" in opened] == []
    assert not any("CANARY" in text for text in report["found"].values())


def test_the_users_folder_stays_empty(report: dict[str, Any]) -> None:
    """No cache, no settings and no id for usage statistics."""
    assert report["written"] == []

import dataclasses
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from ingest_assets.parsing.libraries import library_versions
from ingest_tests.parsing import documents
from ingest_tests.parsing.conftest import Read

HEAVY = {"docling", "torch", "transformers", "onnxruntime", "cv2", "rapidocr", "rapid_layout"}
MODULES = (
    "engines",
    "errors",
    "guard.file_check",
    "libraries",
    "media",
    "page_ranges",
    "reader",
    "pdf.layout",
    "pdf.scans",
    "pdf.blocks",
    "pdf.document",
    "pdf.grids",
)

_ELSEWHERE = """
import dataclasses, json, sys
from pathlib import Path
from ingest_assets.settings.parsing import ParsingOptions
from ingest_assets.parsing.media import media_type
from ingest_assets.parsing.reader import DocumentReader

reader = DocumentReader(ParsingOptions(), threads=1)
found = {}
for path in sorted(Path(sys.argv[1]).iterdir()):
    mime = media_type(path.name, path.read_bytes()[:8192])
    found[path.name] = dataclasses.asdict(reader.read(path, path.name, mime))
print(json.dumps(found))
"""


@pytest.mark.slow
def test_another_process_reads_the_same_bytes(read: Read, tmp_path: Path) -> None:
    """With another hash seed, thread count and folder: equal doctags, JSON and counts."""
    folder = tmp_path / "elsewhere" / "deep"
    folder.mkdir(parents=True)
    lines = [
        (72, 760 - 14 * at, 11, f"Line {at} of the apiary handbook, on swarms and stores.")
        for at in range(30)
    ]
    (folder / "a.pdf").write_bytes(documents.pdf([lines, lines[:3]]))
    documents.scan(folder / "b.pdf", "Honey bees forage")
    documents.docx(folder / "c.docx", "Minutes", ["The roof is let."], [["Hive", "kg"], ["A1", "31"]])
    (folder / "d.html").write_text("<h1>T</h1><ul><li>a</li><li>b</li></ul>")
    here = {path.name: dataclasses.asdict(read(path.name, path)) for path in sorted(folder.iterdir())}
    assert _read_elsewhere(folder) == json.loads(json.dumps(here))


def _read_elsewhere(folder: Path) -> object:
    environment = os.environ | {"PYTHONHASHSEED": "4242"}
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "", "a reader writes nothing to a terminal"
    return json.loads(done.stdout)


def test_importing_the_room_loads_nothing_heavy() -> None:
    """Dagster loads the definitions repeatedly."""
    imports = "".join(f"import ingest_assets.parsing.{name}\n" for name in MODULES)
    code = f"import sys\n{imports}print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(done.stdout.split())


def test_library_versions_are_those_installed() -> None:
    """They are part of every fingerprint."""
    found = library_versions()
    assert found["docling"] == version("docling")
    assert found["onnxruntime"] == version("onnxruntime")

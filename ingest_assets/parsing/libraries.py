"""Whose versions decide what a document reads as. They are part of the doctags' fingerprint."""

from importlib.metadata import PackageNotFoundError, version

DECIDING = (
    "docling",
    "docling-core",
    "docling-ibm-models",
    "docling-parse",
    "rapid-layout",
    "rapidocr",
    "onnxruntime",
    "pypdfium2",
    "numpy",
    "pillow",
    "beautifulsoup4",
    "lxml",
    "marko",
    "python-docx",
    "python-pptx",
    "openpyxl",
)


def library_versions() -> dict[str, str]:
    """Name and installed version of every library that can change the doctags; `absent` if not installed."""
    return {name: _version(name) for name in DECIDING}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"

"""Whose versions decide what a document reads as. They are part of the doctags' fingerprint."""

from ingest_assets.model.identity import installed_versions

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
    "charset-normalizer",
    "lxml",
    "marko",
    "python-docx",
    "python-pptx",
    "openpyxl",
    "opencv-python-headless",
    "pylatexenc",
    "odfdo",
    "mail-parser",
    "python-oxmsg",
    "defusedxml",
)


def library_versions() -> dict[str, str]:
    """Name and installed version of every library that can change the doctags; `absent` if not installed."""
    return installed_versions(*DECIDING)

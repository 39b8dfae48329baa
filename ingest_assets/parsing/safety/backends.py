"""This product's limits in the words of Docling's backends, so that one set of settings rules."""

from typing import Any

from ingest_assets.model.options import ParsingOptions
from ingest_assets.parsing.safety.bombs import MEBIBYTE
from ingest_assets.parsing.safety.images import MEGAPIXEL


def backend_options(kind: str, options: ParsingOptions) -> Any:
    """For formats other than PDF; None where there is nothing to set. Docling's defaults fetch nothing."""
    from docling.datamodel import backend_options as docling

    size = options.max_unpacked_mebibytes * MEBIBYTE
    members = options.max_archive_members
    archive = {"max_total_bytes": size, "max_file_bytes": size, "max_member_count": members}
    if kind in ("html", "mhtml"):
        return docling.HTMLBackendOptions(infer_furniture=options.html != "permissive")
    if kind == "image":
        return docling.PdfBackendOptions(max_image_pixels=options.max_image_megapixels * MEGAPIXEL)
    if kind == "latex":  # its clock would make the text depend on how busy the machine is
        return docling.LatexBackendOptions(parse_timeout=None)
    made = {
        "docx": docling.MsWordBackendOptions,
        "xlsx": docling.MsExcelBackendOptions,
        "epub": docling.EpubBackendOptions,
    }.get(kind)
    return made(**archive) if made else None

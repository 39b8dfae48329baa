"""How large something may be: the rules for all formats, and the same limits as Docling takes them."""

from typing import Any

from ingest_assets.parsing.errors import DecompressionBomb, DocumentTooLarge, EmptyDocument
from ingest_assets.settings.parsing import ParsingOptions

MEBIBYTE = 1024 * 1024
MEGAPIXEL = 1_000_000
# Below this, what is packed well is no danger: a sheet of equal rows packs a thousandfold.
HARMLESS_BYTES = 32 * MEBIBYTE
MAX_TABLE_CELLS = 1_000_000  # Docling's own limit


def check_size(size_bytes: int, options: ParsingOptions) -> None:
    """Refuse nothing and too much."""
    if size_bytes == 0:
        raise EmptyDocument("The file is empty (0 bytes); save it again or remove it.")
    if size_bytes > options.max_mebibytes * MEBIBYTE:
        raise DocumentTooLarge(
            f"The file has {size_bytes} bytes, more than the {options.max_mebibytes} MiB allowed; "
            "split it or raise parsing.max_mebibytes."
        )


def most_bytes(packed_bytes: int, options: ParsingOptions, harmless_bytes: int = HARMLESS_BYTES) -> int:
    """How far something of this size may unfold, so that whoever unpacks it can stop there."""
    for_its_size = max(harmless_bytes, packed_bytes * options.max_compression_ratio)
    return min(for_its_size, options.max_unpacked_mebibytes * MEBIBYTE)


def refuse_bomb(
    what: str,
    packed_bytes: int,
    unpacked_bytes: float,
    options: ParsingOptions,
    harmless_bytes: int = HARMLESS_BYTES,
) -> None:
    """Raise when this unfolds to more than the limits allow, in all or for its size."""
    if unpacked_bytes <= most_bytes(packed_bytes, options, harmless_bytes):
        return
    if unpacked_bytes > options.max_unpacked_mebibytes * MEBIBYTE:
        limit, setting = f"the {options.max_unpacked_mebibytes} MiB allowed", "max_unpacked_mebibytes"
    else:
        limit, setting = f"{options.max_compression_ratio} times its size", "max_compression_ratio"
    raise DecompressionBomb(
        f"{what} unfolds to more than {limit}; if you trust its source, raise parsing.{setting}."
    )


def refuse_large_table(what: str, cells: int) -> None:
    """Raise when a table has more cells than Docling takes."""
    if cells > MAX_TABLE_CELLS:
        raise DocumentTooLarge(
            f"{what} has {cells} cells, more than the {MAX_TABLE_CELLS} that one table may have; split it."
        )


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

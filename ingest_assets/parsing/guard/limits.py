"""Size limits of all formats, and the same limits as Docling's backend options."""

from typing import Any

from ingest_assets.parsing.errors import DecompressionBomb, DocumentTooLarge, EmptyDocument
from ingest_assets.settings.parsing import ParsingOptions

MEBIBYTE = 1024 * 1024
MEGAPIXEL = 1_000_000
# Content up to this size is safe at any compression ratio: a sheet of equal rows compresses 1000 : 1.
HARMLESS_BYTES = 32 * MEBIBYTE
MAX_TABLE_CELLS = 1_000_000  # Docling's own limit


def check_size(size_bytes: int, options: ParsingOptions) -> None:
    """Refuse an empty file and one larger than `parsing.max_mebibytes`."""
    if size_bytes == 0:
        raise EmptyDocument("The file is empty (0 bytes). Save it again or remove it.")
    if size_bytes > options.max_mebibytes * MEBIBYTE:
        raise DocumentTooLarge(
            f"The file is too large: {size_bytes} bytes (limit {options.max_mebibytes} MiB). "
            "Split it or raise parsing.max_mebibytes."
        )


def max_unpacked_bytes(
    packed_bytes: int, options: ParsingOptions, harmless_bytes: int = HARMLESS_BYTES
) -> int:
    """Return how many bytes content of this packed size may unpack to."""
    by_ratio = max(harmless_bytes, packed_bytes * options.max_compression_ratio)
    return min(by_ratio, options.max_unpacked_mebibytes * MEBIBYTE)


def check_unpacked_size(
    name: str,
    packed_bytes: int,
    unpacked_bytes: float,
    options: ParsingOptions,
    harmless_bytes: int = HARMLESS_BYTES,
) -> None:
    """Raise when the content unpacks to more than the size limit or the compression ratio allows."""
    if unpacked_bytes <= max_unpacked_bytes(packed_bytes, options, harmless_bytes):
        return
    if unpacked_bytes > options.max_unpacked_mebibytes * MEBIBYTE:
        limit, setting = f"{options.max_unpacked_mebibytes} MiB", "max_unpacked_mebibytes"
    else:
        limit, setting = f"{options.max_compression_ratio} times its size", "max_compression_ratio"
    raise DecompressionBomb(
        f"{name} unpacks to more than the limit of {limit}. If you trust its source, raise parsing.{setting}."
    )


def check_table_size(name: str, cells: int) -> None:
    """Raise when a table has more cells than Docling accepts."""
    if cells > MAX_TABLE_CELLS:
        raise DocumentTooLarge(f"{name} has too many cells: {cells} (limit {MAX_TABLE_CELLS}). Split it.")


def backend_options(file_format: str, options: ParsingOptions) -> Any:
    """Return Docling's options for a format other than PDF; None for its defaults, which fetch nothing."""
    from docling.datamodel import backend_options as docling

    size = options.max_unpacked_mebibytes * MEBIBYTE
    members = options.max_archive_members
    archive = {"max_total_bytes": size, "max_file_bytes": size, "max_member_count": members}
    if file_format in ("html", "mhtml"):
        return docling.HTMLBackendOptions(infer_furniture=options.html != "permissive")
    if file_format == "image":
        return docling.PdfBackendOptions(max_image_pixels=options.max_image_megapixels * MEGAPIXEL)
    if file_format == "latex":  # with a timeout, the text would depend on the load of the machine
        return docling.LatexBackendOptions(parse_timeout=None)
    option_type = {
        "docx": docling.MsWordBackendOptions,
        "xlsx": docling.MsExcelBackendOptions,
        "epub": docling.EpubBackendOptions,
    }.get(file_format)
    return option_type(**archive) if option_type else None

"""When small is too large: the one rule for everything that is packed."""

from ingest_assets.model.options import ParsingOptions
from ingest_assets.parsing.errors import DecompressionBomb

MEBIBYTE = 1024 * 1024
# Below this, what is packed well is no danger: a sheet of equal rows packs a thousandfold.
HARMLESS_BYTES = 32 * MEBIBYTE


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

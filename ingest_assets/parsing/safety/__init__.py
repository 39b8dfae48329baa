"""What is refused, mended or noted before a parser sees the bytes. It runs where the parser will run."""

from ingest_assets.parsing.safety.inspection import Inspected, check_size, docling_format, inspect

__all__ = ["Inspected", "check_size", "docling_format", "inspect"]

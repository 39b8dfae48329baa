"""What is refused, repaired or noted before a parser sees the bytes. It runs where the parser will run.

`inspect.py` looks at any document; `archives.py`, `images.py`, `markup.py` and `pdf.py` at those of their
kind.
"""

from ingest_assets.parsing.guard.inspect import Inspected, check_size, docling_format, inspect

__all__ = ["Inspected", "check_size", "docling_format", "inspect"]

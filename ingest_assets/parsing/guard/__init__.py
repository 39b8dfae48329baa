"""What is refused, repaired or noted before a parser sees the bytes. It runs where the parser will run.

`inspect.py` looks at any document; `archives.py`, `images.py`, `markup.py` and `pdf.py` at those of their
kind; `limits.py` has the rules for all of them.
"""

from ingest_assets.parsing.guard.inspect import Inspected, docling_format, inspect
from ingest_assets.parsing.guard.limits import check_size

__all__ = ["Inspected", "check_size", "docling_format", "inspect"]

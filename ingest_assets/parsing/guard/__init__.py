"""Checks of a file before it is parsed. They refuse, repair or warn, and run in the parser's process.

`file_check.py` chooses the checks of a format; `archives.py`, `images.py`, `markup.py` and `pdf.py` contain
them; `limits.py` has the size limits that all formats share.
"""

from ingest_assets.parsing.guard.file_check import CheckedFile, check_file, docling_format
from ingest_assets.parsing.guard.limits import check_size

__all__ = ["CheckedFile", "check_file", "check_size", "docling_format"]

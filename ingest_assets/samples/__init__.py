"""Sample documents that ship with the product: one small library about running a city apiary.

The documents are fictional and dedicated to the public domain (CC0); `README.md` beside this file lists them.
"""

from pathlib import Path

BROKEN_SAMPLE = "damaged-inspection-report.pdf"
"""The one document that no reader can open; every run over the samples ends with it as a failed item."""

REJECTED_SAMPLES = {"members-sign-in.html": "login_page", "winter-guide-reprint.md": "duplicate"}
"""Those that can be read and that admission rejects, and why."""


def labelled_folder() -> Path:
    """The labelled set that ships with the product: its documents, its queries and what they should find."""
    return Path(__file__).parent / "labelled"


def samples_folder() -> Path:
    """The folder that holds the sample documents, inside the installed package."""
    return Path(__file__).parent / "documents"

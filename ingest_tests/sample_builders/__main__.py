"""Rebuild every binary sample into the shipped folder, or into the folder given as the only argument."""

import sys
from pathlib import Path

from ingest_assets.samples import samples_folder
from ingest_tests.sample_builders import build_docx, build_pdf, build_pptx, build_scan, build_xlsx


def main() -> None:
    """Build all formats and print one line per file."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else samples_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for builder in (build_docx, build_pptx, build_xlsx, build_pdf, build_scan):
        for path in builder.build_all(folder):
            print(f"{path.stat().st_size:>8,} bytes  {path.name}")  # noqa: T201  the answer of a command


if __name__ == "__main__":
    main()

"""Reports as JSON files, of the commands that measure."""

import json
from pathlib import Path
from typing import Any

from ingest_assets.model.errors import ConfigError
from ingest_assets.storage.atomic import replacing


def require_place(output: Path | None) -> None:
    """Found out before anything is measured, not after."""
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise ConfigError(f"{output}: cannot be written; give a file in a folder that is there.")


def write_report(output: Path, report: dict[str, Any]) -> None:
    """Whole, or not at all."""
    with replacing(output.absolute()) as scratch:
        scratch.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

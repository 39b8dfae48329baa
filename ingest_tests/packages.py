"""Packages as pip installs them: a module, and its entry points in a `.dist-info`."""

from collections.abc import Mapping
from pathlib import Path


def offer_providers(folder: Path, package: str, source: str, providers: Mapping[str, str]) -> Path:
    """A package whose one module, of its name, offers dense providers; gives the folder for `sys.path`."""
    module = package.replace("-", "_")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / f"{module}.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {module}:{attribute}\n" for name, attribute in providers.items()]
    (info / "entry_points.txt").write_text(f"[ingest_assets.dense_providers]\n{''.join(lines)}")
    return folder

"""The project's files: pins, top level, Dagster's validation."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import ingest_assets
from ingest_tests.conftest import clean_environment

PROJECT = Path(ingest_assets.__file__).resolve().parents[1]


def _name(requirement: str) -> str:
    return re.split(r"[<>=!\[; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_every_dependency_is_pinned_to_a_tested_version():
    """`make setup` must install the versions that were tested together."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    declared = {_name(requirement) for requirement in project["dependencies"]}
    declared |= {
        _name(requirement) for extra in project["optional-dependencies"].values() for requirement in extra
    }
    lines = (PROJECT / "constraints.txt").read_text().splitlines()
    pinned = {_name(line) for line in lines if re.fullmatch(r"[A-Za-z0-9_.\-]+==\S+", line)}

    assert declared - {project["name"]} <= pinned
    assert all(
        re.fullmatch(r"[A-Za-z0-9_.\-]+==[\w.+!]+", line) for line in lines if not line.startswith("#")
    )


def test_dagster_validates_the_workspace(tmp_path: Path):
    """Loaded like a web server does."""
    where = {"DAGSTER_HOME": str(tmp_path), "INGEST_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", str(PROJECT / "workspace.yaml")],
        env=clean_environment() | where,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_samples_ship_with_the_package():
    """`ingest demo` must work from an installed wheel, without a project folder."""
    from ingest_assets.samples import BROKEN_SAMPLE, REJECTED_SAMPLES, samples_folder

    suffixes = [path.suffix for path in samples_folder().iterdir()]

    assert samples_folder().is_relative_to(PROJECT / "ingest_assets")
    assert len(suffixes) >= 13
    assert {".html", ".md", ".docx", ".pptx", ".xlsx", ".pdf"} <= set(suffixes)
    assert all((samples_folder() / name).is_file() for name in (BROKEN_SAMPLE, *REJECTED_SAMPLES))

"""Make Office files repeatable: the libraries stamp the current time into the zip and its core properties."""

import re
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from ingest_tests.sample_builders.markup import BUILT_AT

MODIFIED = re.compile(rb"(<dcterms:modified[^>]*>)[^<]*(</dcterms:modified>)")


def freeze(path: Path) -> Path:
    """Rewrite an Office file with one fixed time for every entry and for the modified property."""
    with ZipFile(path) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(frozen_entry(name), with_fixed_time(name, content))
    return path


def frozen_entry(name: str) -> ZipInfo:
    """A compressed zip entry dated to the build time."""
    entry = ZipInfo(name, date_time=BUILT_AT.timetuple()[:6])
    entry.compress_type = ZIP_DEFLATED
    return entry


def with_fixed_time(name: str, content: bytes) -> bytes:
    """The same entry; core properties get the build time."""
    if name != "docProps/core.xml":
        return content
    stamp = BUILT_AT.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    return MODIFIED.sub(rb"\g<1>" + stamp + rb"\g<2>", content)

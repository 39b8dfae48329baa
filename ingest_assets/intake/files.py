"""Artifacts that are files: their bytes are copied into the store, so that nobody can change them later."""

import stat
from collections.abc import Callable
from pathlib import Path

from ingest_assets.intake.fetch.sniffing import HEAD_BYTES, Sniffer
from ingest_assets.model.errors import DocumentMissing, DocumentUnreadable, NotAFile
from ingest_assets.model.items import Blob
from ingest_assets.model.ports import BlobStore

_BLOCK = 1024 * 1024


def copy_file(
    path: Path, blobs: BlobStore, sniff: Sniffer, on_bytes: Callable[[int], None]
) -> tuple[Blob, str]:
    """The file's bytes in the store, and its media type by name and first bytes."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise NotAFile(f"{path} is not a regular file; queue files, or watch the folder.")
        head = b""
        with path.open("rb") as stream, blobs.download(f"file {path}") as download:
            download.restart(None)
            while block := stream.read(_BLOCK):
                head = head or block[:HEAD_BYTES]
                download.write(block)
                on_bytes(len(block))
            return download.finish(), sniff(path.name, head)
    except FileNotFoundError:
        raise DocumentMissing(f"{path} is not there; correct the path or bring the file back.") from None
    except OSError as error:
        raise DocumentUnreadable(
            f"{path} cannot be copied ({error.strerror}); check permissions and free space."
        ) from None

"""Where the bytes of an artifact come from: its URL, or its file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ingest_assets.intake.artifacts import Artifact
from ingest_assets.intake.catalogue import Acquired
from ingest_assets.intake.fetch import Fetcher, NotModified, Validators
from ingest_assets.intake.fetch.sniffing import Sniffer
from ingest_assets.intake.files import copy_file
from ingest_assets.model.items import Blob
from ingest_assets.model.ports import BlobStore


@dataclass(frozen=True, slots=True)
class GetBytes:
    """Fetches or copies into the store; an artifact that was fetched before is asked for conditionally."""

    fetcher: Fetcher
    blobs: BlobStore
    sniff: Sniffer

    def __call__(
        self, artifact: Artifact, max_seconds: float, on_bytes: Callable[[int], None]
    ) -> Acquired | NotModified:
        """The bytes, or word that they are still the same."""
        if artifact.url is None:
            blob, mime = copy_file(Path(artifact.path or ""), self.blobs, self.sniff, on_bytes)
            return Acquired(blob, mime)
        known = Validators(artifact.etag, artifact.last_modified, artifact.content_hash)
        came = self.fetcher.fetch(
            artifact.url,
            known if artifact.content_hash else None,
            max_seconds=max_seconds,
            on_bytes=on_bytes,
        )
        if isinstance(came, NotModified):
            return came
        return Acquired(
            Blob(came.path, came.content_hash, came.size_bytes, came.is_new),
            came.media_type,
            came.etag,
            came.last_modified,
            {
                "final_url": came.final_url,
                "declared_type": came.declared_type,
                "charset": came.charset,
                "resumed_from_bytes": came.resumed_from_bytes,
            },
        )

"""From the ledger's rows to what the documents stage works on."""

from pathlib import Path

from ingest_assets.intake.artifacts import Artifact, Failure
from ingest_assets.intake.ledger import Document
from ingest_assets.model.identity import canonical_json
from ingest_assets.stages.documents import AcquiredFile, KnownFile, LostArtifact


def known_file(document: Document, folder: Path) -> KnownFile:
    """A file of a watched folder."""
    return KnownFile(
        doc_id=document.doc_id,
        batch=document.batch,
        seq=document.seq,
        source=document.source,
        path=str(folder / document.path),
        content_hash=document.content_hash,
        size_bytes=document.size_bytes,
    )


def acquired_file(document: Document, artifact: Artifact, path: Path) -> AcquiredFile:
    """An artifact whose bytes rest at a path."""
    return AcquiredFile(
        doc_id=document.doc_id,
        batch=document.batch,
        seq=document.seq,
        source=document.source,
        path=str(path),
        content_hash=document.content_hash,
        size_bytes=document.size_bytes,
        uri=artifact.url or Path(artifact.path or "").as_uri(),
        mime=artifact.mime or "",
        resolver=artifact.resolver,
        host=artifact.host or None,
        etag=artifact.etag,
        last_modified=artifact.last_modified,
        meta=canonical_json(artifact.meta) if artifact.meta else None,
    )


def lost_artifact(doc_id: str, failure: Failure) -> LostArtifact:
    """An artifact that was given up."""
    return LostArtifact(doc_id, failure.category, failure.code, failure.message)


def is_due(artifact: Artifact, at: float) -> bool:
    """True when an artifact can be leased by then: it waits no longer, or its worker fell silent."""
    if artifact.state == "queued":
        return artifact.not_before <= at
    return artifact.lease_expires is not None and artifact.lease_expires <= at

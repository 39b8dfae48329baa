"""What an item that is still to be made above will be to the stage below, for those who plan ahead."""

from pathlib import Path

from ingest_assets.model.items import WorkItem
from ingest_assets.parsing.media import media_type
from ingest_assets.stages.doctags import unread_by, upstream_of
from ingest_assets.stages.documents import HEAD_BYTES
from ingest_assets.stages.stage import Candidate


def acquired(item: WorkItem) -> Candidate | None:
    """For doctags: by the bytes and the media type; nothing when the document cannot be had."""
    mime = expected_mime(item)
    if mime is None:
        return None
    upstream = upstream_of(item.meta["content_hash"], mime)
    return Candidate(item.item_id, upstream, can_adopt=True, ignores=unread_by(mime))


def expected_mime(item: WorkItem) -> str | None:
    """The media type that the documents stage will write; nothing when the document cannot be had."""
    try:
        path = Path(item.meta["path"])
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except (KeyError, OSError):
        return None
    return item.meta.get("mime") or media_type(path.name, head)

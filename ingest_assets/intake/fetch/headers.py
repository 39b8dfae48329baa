"""What an answer's headers say, read with distrust: a wrong header is a missing one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message

import httpx

from ingest_assets.model.endpoints import epoch_s

_STRONG_AFTER_S = 60.0  # RFC 9110, 8.8.2.2: a change within the same second would go unseen


@dataclass(frozen=True, slots=True)
class Validators:
    """What is known of a document fetched before: with these a server can say that it did not change."""

    etag: str | None = None
    last_modified: str | None = None
    content_hash: str | None = None

    def as_request(self) -> dict[str, str]:
        """The headers of a conditional request; none when there is nothing to compare by."""
        wanted = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in wanted.items() if value and _is_sendable(value)}


def _is_sendable(value: str) -> bool:
    return value.isascii() and value.isprintable()


def resume_note(headers: httpx.Headers) -> dict[str, str] | None:
    """What must be the same for a broken download to go on, or None where the server gives no such thing.

    Only strong validators will do: with a weak one, two halves of different files could be joined.
    """
    etag = headers.get("etag", "").strip()
    if etag.startswith('"') and _is_sendable(etag):
        return {"if_range": etag}
    modified, dated = headers.get("last-modified", ""), headers.get("date", "")
    changed_s, now_s = epoch_s(modified), epoch_s(dated)
    if changed_s is None or now_s is None or now_s - changed_s < _STRONG_AFTER_S:
        return None
    return {"if_range": modified.strip()}


def continues_at(headers: httpx.Headers, offset: int) -> bool:
    """True when a 206 brings a single range that begins where the partial file ends."""
    found = re.fullmatch(
        r"\s*bytes\s+(\d{1,18})-(\d{1,18})/(\d{1,18}|\*)\s*", headers.get("content-range", "")
    )
    return found is not None and int(found[1]) == offset and int(found[2]) >= offset


def total_bytes(headers: httpx.Headers) -> int | None:
    """The size of the whole document as a 206 tells it."""
    found = re.search(r"/(\d{1,18})\s*$", headers.get("content-range", ""))
    return int(found[1]) if found else None


def content_length(headers: httpx.Headers) -> int | None:
    """The size of this body on the wire, if it is told."""
    given = headers.get("content-length", "").strip()
    return int(given) if re.fullmatch(r"\d{1,18}", given, re.ASCII) else None


def declared_type(headers: httpx.Headers) -> tuple[str | None, str | None]:
    """Media type and charset of `Content-Type`: hints, no more."""
    header = _parsed("content-type", headers)
    charset = header.get_content_charset()
    return (header.get_content_type() if "content-type" in headers else None), charset


def suggested_name(headers: httpx.Headers) -> str | None:
    """The file name of `Content-Disposition`; only its suffix is ever used."""
    return _parsed("content-disposition", headers).get_filename()


def _parsed(name: str, headers: Mapping[str, str]) -> Message:
    message = Message()
    message[name] = " ".join(headers.get(name, "").split())
    return message

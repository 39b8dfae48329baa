"""What a document says about itself, and its address about it."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from ingest_assets.stages.judging.reading import Reading

_HEAD_BLOCKS = 10
_DAY = r"((?:19|20)\d\d)-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?!\d)"
_STATED = re.compile(
    r"(?:^|\s)(?:date|published|published on|publication date|date published|posted on|datum"
    rf"|veröffentlicht am|date de publication|fecha|data|дата|日期|发布日期|日付)\s*[:：\t]\s*{_DAY}",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(rf"(?<!\d)(?:{_DAY}|((?:19|20)\d\d)/(0?[1-9]|1[0-2])/(0?[1-9]|[12]\d|3[01])(?!\d))")


@dataclass(frozen=True, slots=True)
class Details:
    """Where a document came from and what it is; none where nobody says."""

    title: str | None
    url: str | None
    domain: str | None
    mime: str
    source: str
    language: str
    published: str | None  # ISO date: as its first lines state, else as its address does
    modified: str | None  # ISO date: as its server says


def details_of(reading: Reading, language: str) -> Details:
    """Taken from the reading; nothing is fetched."""
    url = reading.address if reading.address.lower().startswith(("http://", "https://")) else None
    return Details(
        title=reading.title,
        url=url,
        domain=_domain(url) if url else None,
        mime=reading.mime,
        source=reading.source,
        language=language,
        published=_stated_day(reading) or _day(_IN_ADDRESS.search(reading.address)),
        modified=modified_day(reading.last_modified),
    )


def modified_day(stated: str | None) -> str | None:
    """The day of a `Last-Modified` header or an ISO time, in UTC."""
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(stated or "")
            return (moment.astimezone(UTC) if moment.tzinfo else moment).date().isoformat()
        except (ValueError, TypeError, OverflowError):
            continue
    return None


def _domain(url: str) -> str | None:
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return None
    return host.removeprefix("www.") if host else None


def _stated_day(reading: Reading) -> str | None:
    head = "\n".join(block.text for block in reading.blocks[:_HEAD_BLOCKS])
    return _day(_STATED.search(head))


def _day(match: re.Match[str] | None) -> str | None:
    if match is None:
        return None
    year, month, day = (int(number) for number in match.groups() if number)
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None

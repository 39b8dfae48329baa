"""What a PDF holds, by its objects: every stream is unfolded once and counted, and almost nothing is kept."""

import re
import zlib
from dataclasses import dataclass, field
from math import inf

from ingest_assets.model.options import ParsingOptions
from ingest_assets.parsing.safety.bombs import MEBIBYTE, most_bytes, refuse_bomb
from ingest_assets.parsing.safety.pdf_objects import PdfObject, inflate, read_objects, unpack_objects

_KEPT_BYTES = 16 * MEBIBYTE  # of a form or an object stream, to be looked into
_BYTES_PER_PIXEL = 4
_MOST_DEFLATED = 1032  # times its size: no stream of that kind unfolds to more
_PICTURE = re.compile(rb"/Subtype\s*/Image\b")
_FORM = re.compile(rb"/Subtype\s*/Form\b")
_OBJECTS = re.compile(rb"/Type\s*/ObjStm\b")
_SCRIPT = re.compile(rb"/(?:JavaScript|JS)\b")
_ATTACHMENT = re.compile(rb"/(?:EmbeddedFiles?|FileAttachment)\b")


@dataclass(slots=True)
class PdfContents:
    """A PDF as its objects show it, by their numbers."""

    heads: dict[int, bytes] = field(default_factory=dict)
    streams: set[int] = field(default_factory=set)
    damaged: set[int] = field(default_factory=set)
    forms: dict[int, bytes] = field(default_factory=dict)
    has_scripts: bool = False
    has_attachments: bool = False

    def note(self, each: PdfObject) -> None:
        """Remember an object; when one comes twice, the later one counts."""
        self.heads[each.number] = each.head
        self.has_scripts = self.has_scripts or _SCRIPT.search(each.head) is not None
        self.has_attachments = self.has_attachments or _ATTACHMENT.search(each.head) is not None
        self.damaged.discard(each.number)
        if each.packed is not None:
            self.streams.add(each.number)


def read_contents(content: bytes, options: ParsingOptions) -> PdfContents:
    """The objects of a PDF that is not encrypted; refuses one whose streams unfold to too much."""
    found, total = PdfContents(), 0
    for each in read_objects(content):
        found.note(each)
        if each.is_inflatable:
            total += _unfold(each, found, options)
            refuse_bomb("The PDF", len(content), total, options)
    return found


def _unfold(stream: PdfObject, found: PdfContents, options: ParsingOptions) -> int:
    """How long the stream is; of pictures nothing counts, as long as they have no more than their pixels."""
    is_picture, is_form = _PICTURE.search(stream.head), _FORM.search(stream.head)
    is_objects = _OBJECTS.search(stream.head)
    packed = len(stream.packed or b"")
    most_pixels = options.max_image_megapixels * 1_000_000 * _BYTES_PER_PIXEL
    limit = most_pixels if is_picture else most_bytes(packed, options)
    if is_picture and len(stream.filters) == 1 and packed * _MOST_DEFLATED <= limit:
        return 0
    size, kept = 0, bytearray()
    try:
        for piece in inflate(stream):
            size += len(piece)
            if size > limit:
                refuse_bomb("A stream of the PDF", packed, inf if is_picture else size, options)
            if (is_form or is_objects) and size <= _KEPT_BYTES:
                kept += piece
    except zlib.error:
        found.damaged.add(stream.number)
    if is_form:
        found.forms[stream.number] = bytes(kept)
    for each in unpack_objects(stream, bytes(kept)) if is_objects else ():
        found.note(each)
    return 0 if is_picture else size

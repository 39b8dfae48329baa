"""The output of Docling's own serializer, for comparison."""

from typing import Any

import pytest
from docling_core.transforms.serializer.doctags import DocTagsDocSerializer
from docling_core.types.doc import DocItemLabel, DoclingDocument, TextItem

TAGGED = (
    DocItemLabel.CAPTION,
    DocItemLabel.CHECKBOX_SELECTED,
    DocItemLabel.CHECKBOX_UNSELECTED,
    DocItemLabel.FOOTNOTE,
    DocItemLabel.HANDWRITTEN_TEXT,
    DocItemLabel.PAGE_FOOTER,
    DocItemLabel.PAGE_HEADER,
    DocItemLabel.PARAGRAPH,
    DocItemLabel.REFERENCE,
    DocItemLabel.TEXT,
)
UNTAGGED = (
    DocItemLabel.EMPTY_VALUE,
    DocItemLabel.FIELD_HEADING,
    DocItemLabel.FIELD_HINT,
    DocItemLabel.FIELD_KEY,
    DocItemLabel.FIELD_VALUE,
    DocItemLabel.MARKER,
)
_CAPTIONS = DocTagsDocSerializer.serialize_captions


def as_docling_writes(document: DoclingDocument) -> str:
    """Docling's own DocTags, with a workaround where it fails on the caption of code."""
    try:
        return document.export_to_doctags()
    except TypeError:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(DocTagsDocSerializer, "serialize_captions", _without_the_setting)
            return document.export_to_doctags()


def _without_the_setting(self: DocTagsDocSerializer, item: Any, **named: Any) -> Any:
    named.pop("is_inline_scope", None)
    return _CAPTIONS(self, item, **named)


def relabelled(document: DoclingDocument) -> DoclingDocument:
    """A copy with the label `text` for every text without a tag."""
    copied = document.model_copy(deep=True)
    for text in copied.texts:
        if isinstance(text, TextItem) and text.label in UNTAGGED:
            text.label = DocItemLabel.TEXT
    return copied

"""A Docling document from its JSON, sooner: what an item is says its label, and need not be tried out."""

from typing import Annotated, get_args

from docling_core.types.doc import DoclingDocument
from pydantic import Field, ValidationError

(_Text,) = get_args(DoclingDocument.model_fields["texts"].annotation)


class _Labelled(DoclingDocument):
    """The same fields."""

    texts: list[Annotated[_Text, Field(discriminator="label")]] = Field(default=[])  # type: ignore[valid-type]


def document_from(text: str) -> DoclingDocument:
    """The document, as Docling itself reads it."""
    try:
        return _Labelled.model_validate_json(text)
    except ValidationError:
        return DoclingDocument.model_validate_json(text)

"""DocTags as Docling writes them, letter for letter, in time that grows with the document and no faster.

Docling looks at the whole document again for every table, and at all its settings for every item. Imported
only where Docling is loaded already.
"""

from functools import cache

from docling_core.types.doc import DocItemLabel, DoclingDocument
from docling_core.types.doc.tokens import DocumentToken

from ingest_assets.parsing.writing.flow import as_flow
from ingest_assets.parsing.writing.writer import opened

__all__ = ["doctags_of"]


def doctags_of(document: DoclingDocument) -> str:
    """The document as DocTags. Form keys and markers have no tag of their own and are written as text."""
    untagged = [at for at, item in enumerate(document.texts) if not _has_tag(item.label)]
    if untagged:
        document = document.model_copy(deep=True)
        for at in untagged:
            document.texts[at].label = DocItemLabel.TEXT
    writer = opened(document)  # Docling's checks and repairs of the whole document, once
    return as_flow(document) or writer.serialize().text


@cache
def _has_tag(label: DocItemLabel) -> bool:
    try:
        return bool(DocumentToken.create_token_name_from_doc_item_label(label))
    except RuntimeError:
        return False

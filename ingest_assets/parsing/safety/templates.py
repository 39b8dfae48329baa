"""Templates, slide shows and documents with macros: the same parts under another label.

The libraries behind Docling refuse them for the label alone. None of the macros is kept for anybody to run.
"""

import re
import zipfile
from io import BytesIO

_OFFICE = b"application/vnd.openxmlformats-officedocument."
_LABELS = "[Content_Types].xml"
_WORD = re.compile(
    rb"application/vnd\.(?:openxmlformats-officedocument\.wordprocessingml\.template"
    rb"|ms-word\.(?:document|template)\.macroEnabled(?:Template)?)\.main\+xml",
    re.IGNORECASE,
)
_SLIDES = re.compile(
    rb"application/vnd\.(?:openxmlformats-officedocument\.presentationml\.(?:template|slideshow)"
    rb"|ms-powerpoint\.(?:template|slideshow)\.macroEnabled)\.main\+xml",
    re.IGNORECASE,
)
_OPEN = re.compile(rb"(application/vnd\.oasis\.opendocument\.[a-z]+)-template")


def as_document(content: bytes) -> bytes:
    """The archive labelled as a plain document; the very same bytes when it is one."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        names = set(archive.namelist())
        labels = names & {_LABELS, "mimetype", "META-INF/manifest.xml"}
        changed = {name: _relabelled(archive.read(name)) for name in labels}
        if all(archive.read(name) == label for name, label in changed.items()):
            return content
        made = BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as target:
            for name in archive.namelist():
                if name in names:  # when one comes twice, readers take the last
                    names.discard(name)
                    target.writestr(zipfile.ZipInfo(name), changed.get(name) or archive.read(name))
        return made.getvalue()


def _relabelled(label: bytes) -> bytes:
    label = _WORD.sub(_OFFICE + b"wordprocessingml.document.main+xml", label)
    label = _SLIDES.sub(_OFFICE + b"presentationml.presentation.main+xml", label)
    return _OPEN.sub(rb"\1", label)

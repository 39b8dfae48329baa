"""Texts for embedding: chunks of the benchmark's documents, and abstracts of the corpus."""

import re
from pathlib import Path

from ingest_assets import samples
from ingest_assets.embedders.model_files import load_tokenizer
from ingest_assets.settings.chunks import resolve_options
from ingest_assets.stages.chunks.cutter import Cutter
from ingest_assets.stages.chunks.fast_document import parse_document
from ingest_assets.stages.chunks.stage import ChunksStage
from ingest_tests.bench.documents import files_below
from ingest_tests.bench.figures import Size
from ingest_tests.bench.reading import converted

KINDS = ("docx", "html", "md")
_ABSTRACTS = Path("retrieval") / "cranfield" / "cran.all.1400"


def chunk_texts(size: Size, number: int) -> tuple[list[str], str]:
    """Return chunks from all over the corpus or the samples, and a note if the corpus has none.

    Generated documents would not do: the lengths of chunks, and their variance, decide the cost of batches.
    """
    shipped = Path(samples.__file__).parent
    texts, note = _chunks_below(size.corpus or shipped, size), ""
    if not texts:
        texts = _chunks_below(shipped, size)
        note = f"from the shipped samples: {size.corpus} has no {', '.join(KINDS)} with text"
    return texts[:: -(-len(texts) // number)], note


def _chunks_below(root: Path, size: Size) -> list[str]:
    stage = ChunksStage()
    cutter = Cutter(load_tokenizer(stage.tokenizer), resolve_options(stage.options, stage.cut.max_tokens))
    rows = converted(files_below(root, KINDS, size))
    documents = [parse_document(row["document"][0].as_py()) for row in rows]
    return [piece.contextualized for document in documents for piece in cutter.pieces(document)[0]]


def abstracts(size: Size, number: int) -> list[str]:
    """Return the first abstracts of Cranfield, if present: longer than most chunks, of similar lengths."""
    file = size.corpus / _ABSTRACTS if size.corpus else None
    if file is None or not file.is_file():
        return []
    parts = re.split(r"^\.I \d+\n", file.read_text(encoding="latin-1"), flags=re.M)[1:]
    texts = [" ".join(part.partition("\n.W\n")[2].split()) for part in parts]
    return [text for text in texts if text][:number]

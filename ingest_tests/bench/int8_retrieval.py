"""The effect of int8 vectors on search: nDCG@10 of a labelled set through the product, against float32."""

import tempfile
from pathlib import Path

from ingest_tests.bench.figures import Figure, Size
from ingest_tests.conftest import Command

_CRANFIELD = Path("retrieval") / "cranfield"


def measure(size: Size) -> list[Figure]:
    """Use Cranfield if the corpus has it, else the shipped set."""
    cranfield = size.corpus / _CRANFIELD if size.corpus else None
    given = ("--set", "cranfield", "--path", cranfield) if cranfield and cranfield.is_dir() else ()
    with tempfile.TemporaryDirectory() as home:
        float32, int8 = (_ndcg(Path(home), provider, given) for provider in ("onnx", "onnx-int8"))
    return [
        Figure("dense nDCG@10, float32", float32, ""),
        Figure("dense nDCG@10, int8", int8, ""),
        Figure("loss by int8", float32 - int8, "", "<=", 0.01),
    ]


def _ndcg(home: Path, provider: str, given: tuple[object, ...]) -> float:
    """Evaluate; the evaluation's home switches between the two sets like any home."""
    report = Command(home).json("eval", "retrieval", *given, INGEST_EMBEDDINGS__DENSE__PROVIDER=provider)
    return float(report["rankings"]["dense"]["ndcg@10"])

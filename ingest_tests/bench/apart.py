"""Run one benchmark in a separate process, so that its memory and CPU figures are its own."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ingest_tests.bench.figures import Figure, Size
from ingest_tests.bench.registry import measure_of

PROJECT = Path(__file__).resolve().parents[2]
LIMIT_S = 1800.0
_DID_NOT_END = [Figure("ran to its end", 0, "", "=", 1)]


def measured_apart(name: str, size: Size) -> list[Figure]:
    """Return the figures of a benchmark; one that breaks or hangs is a missed figure, explained on stderr."""
    corpus = str(size.corpus.resolve()) if size.corpus else ""
    line = [sys.executable, "-m", __name__, name, str(size.scale), corpus]
    try:
        done = subprocess.run(line, cwd=PROJECT, stdout=subprocess.PIPE, timeout=LIMIT_S, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"{name}: {error}\n")
        return _DID_NOT_END
    return [_figure(values) for values in json.loads(done.stdout)]


def _figure(values: dict[str, Any]) -> Figure:
    spread = values.pop("spread")
    return Figure(**values, spread=None if spread is None else tuple(spread))


def main(name: str, scale: str, corpus: str) -> None:
    """Measure and write JSON to standard output."""
    size = Size(float(scale), Path(corpus) if corpus else None)
    figures = measure_of(name)(size)
    json.dump([dataclasses.asdict(figure) for figure in figures], sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])

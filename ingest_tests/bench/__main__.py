"""The command: run benchmarks, print a table, exit with 1 if a required figure is missed."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ingest_tests.bench.apart import measured_apart
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.bench.memory_plot import PLOT_VARIABLE
from ingest_tests.bench.registry import NAMES, QUICK_NAMES, quick_scale, summary

CORPUS_VARIABLE = "BENCH_CORPUS"
_COLUMNS = "{:<18}  {:<46}  {:>12}  {:<8}  {:<14}  {:<10}  {:<4}  {}"
_HEADER = ("name", "figure", "measured", "unit", "spread", "wanted", "ok", "note")


def main(arguments: Sequence[str]) -> int:
    """Return 0 if every required figure is reached, 1 if one is missed."""
    options = _parsed(arguments)
    if options.list:
        for name in NAMES:
            sys.stdout.write(f"{name:<20}{summary(name)}\n")
        return 0
    names = options.names or (QUICK_NAMES if options.quick else NAMES)
    sizes = {
        name: Size(quick_scale(name) if options.quick else options.scale, options.corpus) for name in names
    }
    if options.json:
        os.environ.setdefault(PLOT_VARIABLE, str(options.json.resolve().with_name("bench-memory.svg")))
    figures = _run(sizes)
    if options.json:
        options.json.write_text(_as_json(figures, sizes), encoding="utf-8")
    return exit_code(figures)


def exit_code(figures: Sequence[tuple[str, Figure]]) -> int:
    """Return 1 if any figure is missed."""
    return 0 if all(figure.is_ok for _, figure in figures) else 1


def table_line(benchmark: str, figure: Figure) -> str:
    """Return one row of the table."""
    verdict = "" if figure.relation is None else "yes" if figure.is_ok else "NO"
    spread = "" if figure.spread is None else " to ".join(map(_shown, figure.spread))
    columns = (figure.name, _shown(figure.value), figure.unit, spread, figure.wanted, verdict, figure.note)
    return _COLUMNS.format(benchmark, *columns).rstrip()


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.3g}"


def _run(sizes: Mapping[str, Size]) -> list[tuple[str, Figure]]:
    figures = []
    sys.stdout.write(_COLUMNS.format(*_HEADER) + "\n")
    for name, size in sizes.items():
        for measured in measured_apart(name, size):
            figure = measured.at(size)
            figures.append((name, figure))
            sys.stdout.write(table_line(name, figure) + "\n")
        sys.stdout.flush()
    return figures


def _as_json(figures: Sequence[tuple[str, Figure]], sizes: Mapping[str, Size]) -> str:
    report = {
        "scale": {name: size.scale for name, size in sizes.items()},
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "figures": [figure.as_row(name) for name, figure in figures],
    }
    return json.dumps(report, indent=2) + "\n"


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ingest_tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; default: all")
    parser.add_argument("--list", action="store_true", help="list the benchmarks")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file too")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the items; default: 1")
    parser.add_argument("--quick", action="store_true", help="only the comparisons, on less data")
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="FOLDER",
        default=os.environ.get(CORPUS_VARIABLE) or None,
        help=f"folder with your documents; default: the variable {CORPUS_VARIABLE}",
    )
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The coordinator's memory over a full run: one figure, a sparkline for the table, and a plot."""

import os
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from ingest_tests.bench.figures import Figure
from ingest_tests.bench.whole_runs import WholeRun

PLOT_VARIABLE = "BENCH_PLOT"  # the file of the plot; without it there is none
MIB = 2**20
_BARS = "▁▂▃▄▅▆▇█"
_WIDTH, _HEIGHT, _MARGIN = 720, 240, 40


def memory_figures(run: WholeRun, documents: int) -> list[Figure]:
    """Return the highest peak after the first batch, relative to the first batch; flat is one."""
    peaks = {done: max(value for _, value in some) for done, some in groupby(run.resident, itemgetter(0))}
    first, *later = peaks.values()
    if not later:
        return []
    if plot := os.environ.get(PLOT_VARIABLE):
        Path(plot).write_text(as_svg(run.resident, documents), encoding="utf-8")
    name = f"peak after batch 1, {documents:,} documents"
    mebibytes = ", ".join(f"{peak / MIB:,.0f}" for peak in (first, *later))
    note = f"{sparkline([resident for _, resident in run.resident])} peaks of {mebibytes} MiB"
    return [Figure(name, max(later) / first, "times", "<=", 1.1, note=note, needs_full_size=True)]


def sparkline(values: Sequence[float], width: int = 32) -> str:
    """Return bars with the maximum of each interval, scaled to the peak."""
    stretches = [values[len(values) * at // width : len(values) * (at + 1) // width] for at in range(width)]
    peaks = [max(stretch) for stretch in stretches if stretch]
    return "".join(_BARS[int(peak / max(peaks) * (len(_BARS) - 1))] for peak in peaks)


def as_svg(samples: Sequence[tuple[int, int]], documents: int) -> str:
    """Plot resident memory over the run, with a line where each batch ended."""
    peak = max(resident for _, resident in samples)

    def at(index: int, resident: int) -> str:
        x = _MARGIN + (_WIDTH - 2 * _MARGIN) * index / max(1, len(samples) - 1)
        return f"{x:.1f},{_HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * resident / peak:.1f}"

    line = " ".join(at(index, resident) for index, (_, resident) in enumerate(samples))
    ends = [index for index in range(1, len(samples)) if samples[index][0] > samples[index - 1][0]]
    marks = "".join(
        f'<polyline points="{at(index, 0)} {at(index, peak)}" stroke="#bbb" stroke-dasharray="4"/>'
        for index in ends
    )
    title = f"Resident memory of the coordinator, {documents:,} documents; peak {peak / MIB:,.0f} MiB"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" fill="none">'
        f'<rect width="100%" height="100%" fill="white"/>{marks}'
        f'<polyline points="{line}" stroke="#1f6feb" stroke-width="1.5"/>'
        f'<text x="{_MARGIN}" y="24" font-family="sans-serif" font-size="13" fill="#222">{title}</text>'
        "</svg>\n"
    )

"""Where a run of lines breaks into paragraphs and list items."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingest_assets.parsing.embedded.direction import is_right_to_left
from ingest_assets.parsing.embedded.lines import Line
from ingest_assets.parsing.embedded.markers import bullet_of, enumeration_of

INDENT = 0.6  # of the text's height
TO_SPARE = 1.0  # of the text's height, beyond the next word, for a line to have ended early by intention


@dataclass(frozen=True, slots=True)
class _Edges:
    """Where a line starts and ends, measured in the direction of reading."""

    start: float
    end: float


def paragraphs_of(run: Sequence[Line]) -> list[list[Line]]:
    """The run's lines in order, cut where a new paragraph or item begins."""
    if len(run) < 2:
        return [list(run)]
    edges = _edges(run)
    cut = _hanging_cut if _is_hanging(run, edges) else _indented_cut
    is_centred = _is_centred(run, edges)
    found: list[list[Line]] = [[run[0]]]
    for at in range(1, len(run)):
        if _begins_item(run, edges, at) or (not is_centred and cut(run, edges, at)):
            found.append([])
        found[-1].append(run[at])
    return found


def _begins_item(run: Sequence[Line], edges: Sequence[_Edges], at: int) -> bool:
    """A bullet always does; a counter may be a number in a sentence, so something must speak for it."""
    if bullet_of(run[at].text):
        return True
    if not enumeration_of(run[at].text):
        return False
    is_shifted = abs(edges[at].start - edges[at - 1].start) > INDENT * run[at].size
    counters = [
        _count(line.text)
        for line, edge in zip(run, edges, strict=True)
        if abs(edge.start - edges[at].start) <= INDENT * line.size
    ]
    own = _count(run[at].text)
    return is_shifted or _ended_early(run, edges, at) or own - 1 in counters or own + 1 in counters


def _count(text: str) -> int:
    """The value of a line's counter; letters count too. Lines without one have none near any other."""
    counter = enumeration_of(text).strip("()[].")
    if counter.isdecimal():
        return int(counter)
    return ord(counter) if len(counter) == 1 else -1000


def starts_item(text: str) -> bool:
    """Whether a line begins with a bullet or a counter."""
    return bool(bullet_of(text) or enumeration_of(text))


def _edges(run: Sequence[Line]) -> list[_Edges]:
    if is_right_to_left("".join(line.text for line in run)):
        return [_Edges(-line.box.right, -line.box.left) for line in run]
    return [_Edges(line.box.left, line.box.right) for line in run]


def _is_centred(run: Sequence[Line], edges: Sequence[_Edges]) -> bool:
    middles = [edge.start + edge.end for edge in edges]
    starts = [edge.start for edge in edges]
    size = run[0].size
    return max(middles) - min(middles) < size and max(starts) - min(starts) > 2 * size


def _is_hanging(run: Sequence[Line], edges: Sequence[_Edges]) -> bool:
    """Only first lines reach out to the margin, as in a list of references."""
    margin = min(edge.start for edge in edges)
    inner = [edge.start > margin + INDENT * line.size for edge, line in zip(edges, run, strict=True)]
    return not inner[0] and (sum(inner) > len(run) / 2 or (len(run) == 2 and inner[1]))


def _hanging_cut(run: Sequence[Line], edges: Sequence[_Edges], at: int) -> bool:
    margin = min(edge.start for edge in edges)
    return edges[at].start <= margin + INDENT * run[at].size


def _indented_cut(run: Sequence[Line], edges: Sequence[_Edges], at: int) -> bool:
    size = run[at].size
    if edges[at].start > edges[at - 1].start + INDENT * size:
        is_item = starts_item(run[at - 1].text)
        return not is_item and (at + 1 == len(run) or edges[at + 1].start < edges[at].start - INDENT * size)
    return _ended_early(run, edges, at)


def _ended_early(run: Sequence[Line], edges: Sequence[_Edges], at: int) -> bool:
    """The line before had room for the first word of this one."""
    spare = max(edge.end for edge in edges) - edges[at - 1].end
    return spare > run[at].first_width + TO_SPARE * run[at].size

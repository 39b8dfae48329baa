"""What a rule says when it objects: why, by which figure, and where the limit was."""

from dataclasses import dataclass

from ingest_assets.model.admission import Reason


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason to reject a document."""

    reason: Reason
    figure: float
    limit: float


def above(reason: Reason, figure: float, limit: float) -> Finding | None:
    """A finding if the figure is above the limit."""
    return Finding(reason, round(figure, 4), limit) if figure > limit else None


def below(reason: Reason, figure: float, limit: float) -> Finding | None:
    """A finding if the figure is below the limit."""
    return Finding(reason, round(figure, 4), limit) if figure < limit else None


def mostly(reason: Reason, chars: int, rest: int, *, least: float, most_rest: int) -> Finding | None:
    """A finding if a text is mostly that, and hardly anything else."""
    share = chars / (chars + rest) if chars else 0.0
    return Finding(reason, round(share, 4), least) if share >= least and rest <= most_rest else None

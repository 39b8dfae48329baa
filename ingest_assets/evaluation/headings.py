"""Headings found, missed and made up."""

from collections import Counter
from collections.abc import Iterable

from ingest_assets.evaluation.agreement import Agreement
from ingest_assets.evaluation.markdown import Heading


def heading_agreement(ours: Iterable[Heading], truth: Iterable[Heading]) -> Agreement:
    """Headings with equal words, as multisets: neither their order nor their level counts here."""
    found, wanted = Counter(h.text for h in ours), Counter(h.text for h in truth)
    return Agreement((found & wanted).total(), wanted.total(), found.total())


def level_agreement(ours: Iterable[Heading], truth: Iterable[Heading]) -> float | None:
    """The share of the headings found whose level is that of the truth; None when none was found."""
    ours, truth = list(ours), list(truth)
    same_text = heading_agreement(ours, truth).matched
    return (Counter(ours) & Counter(truth)).total() / same_text if same_text else None

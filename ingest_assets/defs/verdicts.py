"""What admission said of a batch or of all, in numbers for people."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from ingest_assets.defs.home import Home
from ingest_assets.defs.settling import judged_rows
from ingest_assets.storage.tables import Commit, Table

_COLUMNS = ["admitted", "reject_mark", "reject_reason", "language", "tier"]
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Verdicts:
    """How many documents were judged, and what became of them."""

    admitted: int
    reasons: Counter[str]
    languages: Counter[str]
    tiers: Counter[str]

    @property
    def rejected(self) -> int:
        return self.reasons.total()

    @property
    def read(self) -> int:
        return self.admitted + self.rejected

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> "Verdicts":
        """Counted from rows of the admission table."""
        admitted, reasons, languages, tiers = 0, Counter[str](), Counter[str](), Counter[str]()
        for row in rows:
            admitted += row["admitted"]
            languages[row["language"]] += 1
            if row["admitted"]:
                tiers[row["tier"]] += 1
            else:
                reasons[f"{row['reject_mark']}: {row['reject_reason']}"] += 1
        return cls(admitted, reasons, languages, tiers)


def verdicts_in(table: Table) -> Verdicts:
    """The verdicts of a table."""
    if not table.paths:
        return Verdicts.of(())
    return Verdicts.of(table.read(lambda rows: rows.select(_COLUMNS)).iter_rows(named=True))


def verdict_metadata(home: Home, wanted: Commit) -> dict[str, Any]:
    """What the Dagster UI shows of a batch whose rows are staged but not committed yet."""
    rows = dict(judged_rows(home, "admission", wanted.batch))
    judged = (rows[doc_id] for doc_id in wanted.items if doc_id in rows and doc_id not in wanted.failures)
    found = Verdicts.of(each.select(_COLUMNS).to_pylist()[0] for each in judged)
    return {
        "read": found.read,
        "admitted": found.admitted,
        "rejected": found.rejected,
        "reasons": dg.MetadataValue.md(_as_table("reason", found.reasons)),
        "languages": dg.MetadataValue.md(_as_table("language", found.languages)),
        "tiers": dg.MetadataValue.md(_as_table("tier", found.tiers)),
    }


def _as_table(what: str, counts: Counter[str]) -> str:
    """Counts as a Markdown table with bars, the most frequent first."""
    if not counts:
        return "none"
    most = max(counts.values())
    shown = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_SHOWN]
    lines = [f"| {name} | {count} | {'█' * max(1, round(20 * count / most))} |" for name, count in shown]
    return "\n".join([f"| {what} | documents | |", "|---|---:|---|", *lines])

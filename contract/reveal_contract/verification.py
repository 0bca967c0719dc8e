"""Whether a change of a node helped a job that a finding slowed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reveal_contract.foreign_names import PrintableRecord


class Verdict(StrEnum):
    """What a change did for the step time of a job."""

    IMPROVED = "Improved"
    NO_EFFECT = "NoEffect"
    WORSE = "Worse"
    UNKNOWN = "Unknown"  # the step time was not read long enough, or the interval holds several


@dataclass(frozen=True, slots=True)
class Effect:
    """By how many percent steps take less time than before, between ``low`` and ``high``.

    Below 0 they take longer.
    """

    percent: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Verification(PrintableRecord):
    """The effect of a ``change`` on the steps of ``subject``; none where it could not be measured.

    ``time_ns`` is when the change was noticed.
    """

    verdict: Verdict
    change: str
    subject: str
    time_ns: int
    effect: Effect | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the row without the time and without floats: percents are decimal strings."""
        row = {"verdict": self.verdict.value, "change": self.change, "subject": self.subject}
        if self.effect is None:
            return row
        return row | {
            "effectPercent": f"{self.effect.percent:.1f}",
            "lowPercent": f"{self.effect.low:.1f}",
            "highPercent": f"{self.effect.high:.1f}",
        }

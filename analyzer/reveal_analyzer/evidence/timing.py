"""Which seconds of a finding are kept, and how finely: pure.

All samples are kept from a minute before the onset to a minute after it, and likewise around the
end.  In between, a sample a second is kept, or one in several if they take too much room.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from reveal_contract.finding import Finding, State
from reveal_contract.time_units import NS_PER_SECOND

AROUND_S = 60  # seconds before and after onset and end
LAG_S = 30  # an end is known ten seconds later, and a step reads what is new after 18


class Detail(Enum):
    """What is kept of a second."""

    NOTHING = 0
    SECOND = 1  # one sample
    TICKS = 2  # every sample


@dataclass(frozen=True)
class Span:
    """A finding from its onset to its end; ``end_ns`` is None while it is open.

    ``around_s`` seconds are kept whole before and after both, and each ``stride``-th second in
    between.
    """

    onset_ns: int
    end_ns: int | None = None
    around_s: int = AROUND_S
    stride: int = 1

    @property
    def first_ns(self) -> int:
        """The first moment that is kept."""
        return self.onset_ns - AROUND_S * NS_PER_SECOND

    @property
    def last_ns(self) -> int | None:
        """The moment after which nothing is kept; None while the finding is open."""
        return None if self.end_ns is None else self.end_ns + AROUND_S * NS_PER_SECOND

    def detail(self, start_ns: int, newest_ns: int) -> Detail:
        """Return what is kept of a second, when ``newest_ns`` is the newest that is known.

        The end of an open finding may be now, so a little more than the newest minute is kept
        whole.
        """
        last_ns = self.last_ns
        if start_ns < self.first_ns or (last_ns is not None and start_ns > last_ns):
            return Detail.NOTHING
        around_ns = self.around_s * NS_PER_SECOND
        if abs(start_ns - self.onset_ns) <= around_ns:
            return Detail.TICKS
        lag_ns = LAG_S * NS_PER_SECOND if self.end_ns is None else 0
        end_ns = newest_ns if self.end_ns is None else self.end_ns
        if abs(start_ns - end_ns) <= around_ns + lag_ns:
            return Detail.TICKS
        on_grid = start_ns // NS_PER_SECOND % self.stride == 0
        return Detail.SECOND if on_grid else Detail.NOTHING


def span_of(finding: Finding) -> Span:
    """Return the span of a finding as it is known now."""
    end_ns = None
    if finding.state is State.RESOLVED:
        end_ns = max(finding.first_observed_ns, finding.last_observed_ns)
    return Span(finding.first_observed_ns, end_ns)

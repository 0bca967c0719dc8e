"""Bounds of levels: which values a metric can have, and which value means "unknown".

Kernel files and drivers have no word for "unknown": they print -1, the largest number of their
type, or the difference of two counters below zero as a u64.  A reading outside of the bounds of its
metric is missing.  Counters have no bounds: all their 64 bits count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

# no reading: the value that marks a missing one, which is outside of all bounds
_NO_READING = -(2**63)
_FIRST, _LAST = _NO_READING + 1, 2**63 - 1


class RawBounds(NamedTuple):
    """Bounds as raw integers (int64), before the scale of the channel is applied."""

    lowest: int = _FIRST
    highest: int = _LAST
    unknown: int = _NO_READING

    def known(self, reading: int | None) -> int | None:
        """Return the reading, or None where it is none of this metric."""
        if reading is None or reading == self.unknown:
            return None
        return reading if self.lowest <= reading <= self.highest else None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The values that a level can have, in the unit of its metric.

    ``unknown`` is a value between ``lowest`` and ``highest`` that means that there is none.
    """

    lowest: float = -math.inf
    highest: float = math.inf
    unknown: float | None = None

    def raw(self, scale: float) -> RawBounds:
        """Return the bounds of the raw integers that ``scale`` converts to the unit."""
        lowest, highest = self.lowest / scale, self.highest / scale
        return RawBounds(
            math.ceil(lowest) if lowest > _FIRST else _FIRST,
            math.floor(highest) if highest < _LAST else _LAST,
            _NO_READING if self.unknown is None else round(self.unknown / scale),
        )


UNBOUNDED = Bounds()
NOT_NEGATIVE = Bounds(lowest=0)
CLOCK = Bounds(1, 1e11)  # Hz of a running clock; 0: the driver does not know
# What the unit alone decides: an amount, a size or a count is never below zero.  A unit that is not
# listed decides nothing, such as the priority of a swap device or a site's own unit.
BY_UNIT = {
    **dict.fromkeys(
        (
            "bits/s", "bytes", "bytes/s", "code", "connections", "count", "cpu", "cpus", "disks",
            "fallbacks", "generation", "GPUs", "Hz", "inodes", "links", "packets", "pages",
            "percent", "ppm", "processes", "queries", "requests", "rows", "slices", "sockets",
            "state", "subjects", "tasks", "threads", "tier", "transfers/s",
        ),
        NOT_NEGATIVE,
    ),
    "lanes": Bounds(1, 32),  # 0: no link; 63 and 255: the register could not be read
    # Electronics are rated from -55 degrees on, silicon ends below 200.  Chips without a sensor
    # report -128, 255, or the raw register.
    "celsius": Bounds(-55, 200),
    "watts": Bounds(0, 100_000),  # an ACPI meter without a value reports 4,294,967
}  # fmt: skip

"""What really happened to a job: its own log of steps."""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_STALL = 1.4  # times the median: an evaluation, a checkpoint; not what a step takes


@dataclass(frozen=True)
class Steps:
    """When each step began, in s of the session's clock, and how long it took."""

    begins: tuple[float, ...]
    lengths: tuple[float, ...]

    def mean(self, begin: float, end: float) -> float | None:
        """The mean step wholly inside a time, stalls left out; ``None`` where there are few."""
        low, high = bisect_left(self.begins, begin), bisect_left(self.begins, end)
        inside = [
            length
            for begin, length in zip(self.begins[low:high], self.lengths[low:high], strict=True)
            if begin + length <= end
        ]
        if len(inside) < 4:
            return None
        middle = float(np.median(inside))
        return float(np.mean([length for length in inside if length < _STALL * middle]))


def read(path: Path, start_ns: int) -> Steps:
    """The steps of a log of JSON lines; a line that was cut off is left out."""
    begins, lengths = [], []
    for line in path.read_text().splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if row.get("event") == "step":
            begins.append(row["begun"] - start_ns / 1e9)
            lengths.append(row["seconds"])
    return Steps(tuple(begins), tuple(lengths))

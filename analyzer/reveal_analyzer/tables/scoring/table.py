"""A table of samples of any period, the input of the detectors of this package."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats, Ints


@dataclass(frozen=True)
class Table:
    """Metrics as columns over rising times.

    ``times_ns`` (n,) are nanoseconds since the epoch, or since any start, strictly rising;
    ``names`` (m,) are the metrics; ``values`` (n, m) their samples, NaN where one is missing.
    Raises ``ValueError`` if the shapes do not fit or the times do not rise.
    """

    times_ns: Ints
    names: tuple[str, ...]
    values: Floats

    def __post_init__(self) -> None:
        expected = len(self.times_ns), len(self.names)
        if self.values.shape != expected:
            rows, columns = expected
            raise ValueError(f"{rows} times and {columns} names for values of {self.values.shape}")
        if len(self.times_ns) > 1 and int(np.diff(self.times_ns).min()) <= 0:
            raise ValueError("times must rise from row to row")

    def __len__(self) -> int:
        return len(self.times_ns)

    @property
    def period_ns(self) -> int:
        """Return the median step between rows in nanoseconds; 0 with fewer than two rows."""
        return int(np.median(np.diff(self.times_ns))) if len(self) > 1 else 0

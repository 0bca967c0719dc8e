"""Settings of the detection on tables, in samples and in the metrics' own spreads."""

from __future__ import annotations

from dataclasses import dataclass

from reveal_contract.time_units import NS_PER_DAY, NS_PER_MINUTE


@dataclass(frozen=True)
class SampleSettings:
    """Settings of ``score`` and ``rank``; the defaults suit any period.

    ``window`` and ``stride`` are samples: 30 and 10 by default in paper mode; in the other modes
    one window size instead of their default sizes.  ``threshold`` is that of the score, by default
    the mode's own.  Raises ``ValueError`` for impossible values.
    """

    window: int | None = None
    stride: int | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 4:
            raise ValueError(f"a window has at least 4 samples, not {self.window}")
        if self.stride is not None and self.stride < 1:
            raise ValueError(f"a stride is at least 1 sample, not {self.stride}")
        if self.threshold is not None and not self.threshold > 0.0:
            raise ValueError(f"a threshold is above 0, not {self.threshold}")

    def frames(self, default: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        """Return (window, stride) pairs: those of the settings, else the default of a mode."""
        if self.window is None and self.stride is None:
            return default
        size = self.window or 30
        return ((size, self.stride or max(1, size // 3)),)


def day_rows(period_ns: int) -> int:
    """Return the samples of the newest reference: a day's, at least 60 and at most 2,000."""
    whole = NS_PER_DAY // period_ns if period_ns else 0
    return int(min(max(whole, 60), 2_000))


def apart_rows(period_ns: int) -> int:
    """Return the largest gap within one alarm: half an hour, 1 to 30 samples."""
    whole = 30 * NS_PER_MINUTE // period_ns if period_ns else 0
    return int(min(max(whole, 1), 30))

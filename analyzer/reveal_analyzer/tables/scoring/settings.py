"""Settings of the detection on tables, in samples and in the metrics' own spreads."""

from __future__ import annotations

from dataclasses import dataclass

from reveal_contract.time_units import NS_PER_DAY, NS_PER_MINUTE


@dataclass(frozen=True)
class SampleSettings:
    """What ``score`` and ``rank`` may be told; the defaults hold for any period.

    ``window`` and ``stride`` are samples: of the paper's mode 30 and 10 where not given; of the
    other modes one window size instead of the usual three.  ``cut`` is the threshold of the
    score, where not given the mode's own.  Raises ``ValueError`` for what cannot be.
    """

    window: int | None = None
    stride: int | None = None
    cut: float | None = None

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 4:
            raise ValueError(f"a window takes 4 samples or more, not {self.window}")
        if self.stride is not None and self.stride < 1:
            raise ValueError(f"a stride is 1 sample or more, not {self.stride}")
        if self.cut is not None and not self.cut > 0.0:
            raise ValueError(f"a threshold is above 0, not {self.cut}")

    def frames(self, usual: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        """(window, stride) pairs: those asked for, else the usual ones of a mode."""
        if self.window is None and self.stride is None:
            return usual
        size = self.window or 30
        return ((size, self.stride or max(1, size // 3)),)


def day_rows(period_ns: int) -> int:
    """Samples that the newest reference holds: a day's, at least 60 and at most 2,000."""
    whole = NS_PER_DAY // period_ns if period_ns else 0
    return int(min(max(whole, 60), 2_000))


def apart_rows(period_ns: int) -> int:
    """Alarms this many samples apart or less are one: half an hour, 1 to 30 samples."""
    whole = 30 * NS_PER_MINUTE // period_ns if period_ns else 0
    return int(min(max(whole, 1), 30))

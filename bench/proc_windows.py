"""Real windows for the benchmarks: numbers of /proc, widened to as many channels as asked."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_RECORDED = Path(__file__).parents[1] / "tests" / "fixtures" / "proc_windows.npz"

Floats = NDArray[np.float64]


def recorded_windows(count: int, channels: int, seed: int = 0) -> list[Floats]:
    """``count`` windows (30 ticks, channels).

    Channels are recorded ones begun at different times, as the cores of a host resemble each
    other; each window starts again, with 1 % of noise where values move.
    """
    rng = np.random.default_rng(seed)
    with np.load(_RECORDED) as stored:
        values = stored["values"]
    column = np.arange(channels) % values.shape[1]
    spread = values.std(0)[column]
    ticks = np.arange(30)[:, None]
    windows = []
    for _ in range(count):
        start = rng.integers(0, len(values) - 30, channels)
        noise = 0.01 * spread * rng.normal(size=(30, channels))
        windows.append(np.ascontiguousarray(values[ticks + start, column] + noise))
    return windows

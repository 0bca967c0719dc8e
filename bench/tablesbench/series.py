"""Series of metrics whose truth is known: healthy ones of many kinds, and faults among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.tables.scoring.table import Table

Floats = NDArray[np.float64]

SECOND = 10**9
_DAY = 288  # samples of five minutes


@dataclass(frozen=True)
class Series:
    """A table and the rows of its fault, (first, end), or None if it is healthy."""

    table: Table
    fault: tuple[int, int] | None = None
    stays: bool = False


Random = np.random.Generator


def noise(random: Random, rows: int, metrics: int) -> Floats:
    """Return healthy metrics of different units, half of them autocorrelated."""
    plain = random.normal(size=(rows, metrics))
    slow = plain.copy()
    for row in range(1, rows):
        slow[row] += 0.8 * slow[row - 1]
    mixed = np.where(np.arange(metrics) % 2 == 0, plain, 0.6 * slow)
    return np.asarray(random.uniform(20, 200, metrics) + mixed * random.uniform(0.5, 4, metrics))


def table(values: Floats, period_s: float = 1.0, times: Floats | None = None) -> Table:
    """Return values as a table of a period, from a Monday on."""
    rows = np.arange(len(values)) if times is None else times
    names = tuple(f"m{index}" for index in range(values.shape[1]))
    start = 1_682_899_200 * SECOND
    return Table(start + (rows * period_s * SECOND).astype(np.int64), names, values)


def event_onsets(random: Random, rows: int, period: float, jitter: float) -> list[int]:
    """Return the first rows of events, with jitter about the clock or from event to event."""
    first = random.uniform(0.1, 0.9) * period
    if random.random() < 0.5:
        due = first + period * np.arange(int(rows / period) + 1)
        onsets = due + random.uniform(-jitter, jitter, len(due)) * period
    else:
        steps = period * (1 + random.uniform(-jitter, jitter, int(1.5 * rows / period) + 2))
        onsets = first + np.cumsum(steps) - steps[0]
    return [int(onset) for onset in onsets if 0 <= onset < rows - 1]


def add_events(
    random: Random,
    values: Floats,
    onsets: list[int],
    length: int,
    spreads: float,
    metrics: int,
    slow: int | None = None,
) -> None:
    """Add events of similar length and height to some metrics, each a bit later or earlier.

    The event that begins in row ``slow`` takes five times as long.
    """
    spread = np.std(np.diff(values, axis=0), axis=0)
    for metric in range(metrics):
        sign, delay = random.choice([-1.0, 1.0]), int(random.integers(0, 3))
        height = sign * spreads * spread[metric] * random.uniform(0.7, 1.5)
        for onset in onsets:
            factor = 5 if onset == slow else 1
            lasting = max(1, round(factor * length * random.uniform(0.8, 1.25)))
            size = height * random.uniform(0.85, 1.15)
            values[onset + delay : onset + delay + lasting, metric] += size


def periodic(random: Random) -> Series:
    """Return a job with events that recur every 60 s to some hours."""
    rows, metrics = int(random.integers(2_000, 5_000)), int(random.integers(4, 12))
    values = noise(random, rows, metrics)
    period = float(np.exp(random.uniform(np.log(60), np.log(rows / 6))))
    length = max(1, round(period * random.choice([0.01, 0.03, 0.1, 0.2, 0.35])))
    onsets = event_onsets(random, rows, period, float(random.choice([0.0, 0.02, 0.05, 0.1])))
    affected = int(random.integers(1, metrics + 1))
    add_events(random, values, onsets, length, float(random.uniform(8, 80)), affected)
    return Series(table(values, float(random.choice([1, 10, 60]))))


def two_trains(random: Random) -> Series:
    """Return a job with evaluations and checkpoints, of different periods and metrics."""
    rows, metrics = 4_000, 8
    values = noise(random, rows, metrics)
    for period in (float(random.uniform(60, 150)), float(random.uniform(300, 600))):
        onsets = event_onsets(random, rows, period, 0.03)
        order = random.permutation(metrics)
        shuffled = values[:, order]
        add_events(random, shuffled, onsets, int(random.integers(2, 12)), 25.0, 4)
        values[:, order] = shuffled
    return Series(table(values))


def square_wave(random: Random) -> Series:
    """Return days that are all alike, with sharp edges, at five minutes."""
    days = int(random.integers(5, 15))
    values = noise(random, days * _DAY, int(random.integers(1, 6)))
    begin, hours = int(random.integers(0, 200)), float(random.uniform(1, 14))
    on = (np.arange(len(values)) - begin) % _DAY < hours * 12
    factor = 0.0 if random.random() < 0.3 else 1.0
    for metric in range(values.shape[1]):
        center = np.median(values[:, metric])
        values[:, metric] = center + factor * (values[:, metric] - center)
        values[on, metric] += float(random.uniform(20, 200))
    return Series(table(values, 300))


def weekly(random: Random) -> Series:
    """Return weeks of working days and weekends."""
    days, metrics = int(random.choice([14, 21, 28])), int(random.integers(2, 8))
    values = noise(random, days * _DAY, metrics)
    rows = np.arange(len(values))
    zone = int(random.integers(-10, 11)) * 12
    hour = ((rows + zone) % _DAY) / 12
    weekend = ((rows + zone) // _DAY) % 7 >= 5
    load = np.clip(np.sin((hour - 6) / 12 * np.pi), 0, None)
    quiet = float(random.uniform(0.1, 0.7))
    spread = np.std(np.diff(values, axis=0), axis=0)
    size = spread * random.uniform(5, 30, metrics)
    values += (load * np.where(weekend, quiet, 1.0))[:, None] * size
    return Series(table(values, 300))


def weekly_backup(random: Random) -> Series:
    """Return four weeks with a backup of some hours each week."""
    values = noise(random, 28 * _DAY, 5)
    begin = int(random.integers(0, 6 * _DAY))
    for week in range(4):
        first = begin + 7 * _DAY * week
        values[first : first + 20, :2] += 60.0
    return Series(table(values, 300))


def phases(random: Random) -> Series:
    """Return a job that alternates between training and evaluation, each for a while."""
    values = noise(random, 3_600, 7)
    length = int(random.integers(200, 500))
    evaluating = (np.arange(3_600) // length) % 2 == 1
    values[evaluating, :3] -= 15.0
    return Series(table(values))


def warm_up(random: Random) -> Series:
    """Return a temperature and caches that rise to their level in the first minutes."""
    values = noise(random, 3_600, 8)
    rise = np.exp(-np.arange(3_600) / float(random.uniform(20, 120)))
    for metric in range(int(random.integers(1, 5))):
        values[:, metric] -= float(random.uniform(20, 60)) * rise
    return Series(table(values))


def restarts(random: Random) -> Series:
    """Return a job that is restarted after a gap, and warms up again."""
    values = noise(random, 3_600, 6)
    times = np.arange(3_600, dtype=float)
    again = int(random.integers(600, 3_000))
    times[again:] += float(random.uniform(60, 3_000))
    lasting = int(random.integers(10, 120))
    rise = np.exp(-np.arange(3_600 - again) / (lasting / 3))
    values[again:, :3] -= 40.0 * rise[:, None]
    return Series(table(values, times=times))


def gaps(random: Random) -> Series:
    """Return a healthy table without some rows and values."""
    values = noise(random, 4_000, 6)
    kept = random.random(4_000) > 0.01
    first = int(random.integers(500, 3_000))
    kept[first : first + 400] = False
    values[random.integers(0, 3_000) :][:300, 2] = np.nan
    return Series(table(values[kept], times=np.flatnonzero(kept).astype(float)))


def calm(random: Random) -> Series:
    """Return noise alone, in some metrics with heavy tails."""
    values = noise(random, int(random.integers(500, 5_000)), int(random.integers(3, 40)))
    tails = random.standard_t(3, size=values.shape)
    values[:, ::3] += tails[:, ::3]
    return Series(table(values, float(random.choice([1, 60, 300]))))


def shift(random: Random) -> Series:
    """Return a run of which some metrics change their level and stay there."""
    rows = int(random.integers(1_000, 4_000))
    values = noise(random, rows, int(random.integers(5, 30)))
    first = int(rows * random.uniform(0.1, 0.9))
    spread = np.std(np.diff(values, axis=0), axis=0)
    for metric in range(int(random.integers(2, 5))):
        size = random.choice([-1.0, 1.0]) * float(random.uniform(12, 30)) * spread[metric]
        values[first:, metric] += size
    return Series(table(values), (first, rows), stays=True)


def two_out(random: Random) -> Series:
    """Return many metrics of which two are far out for a minute."""
    rows, metrics = 2_000, int(random.choice([5, 12, 30, 72, 150, 500]))
    values = noise(random, rows, metrics)
    first, spread = int(random.integers(200, 1_800)), values.std(0)
    values[first : first + 60, 1] += 30 * spread[1]
    values[first : first + 60, 2] -= 15 * spread[2]
    return Series(table(values), (first, first + 60))


def spike(random: Random) -> Series:
    """Return a run with a single sample far out in some metrics."""
    values = noise(random, 3_000, int(random.integers(5, 40)))
    row, metrics = int(random.integers(1_500, 2_900)), int(random.integers(2, 5))
    values[row, :metrics] += 40 * values.std(0)[:metrics]
    return Series(table(values), (row, row + 1))


def _checkpoints(random: Random) -> tuple[Floats, list[int], int]:
    values = noise(random, 4_000, 7)
    period = float(random.uniform(100, 350))
    onsets = event_onsets(random, 3_950, period, float(random.choice([0.0, 0.03])))
    return values, onsets, int(random.integers(6, 15))


def missing_checkpoint(random: Random) -> Series:
    """Return a job that leaves out a checkpoint."""
    values, onsets, length = _checkpoints(random)
    lost = onsets.pop(int(random.integers(3, len(onsets) - 3)))
    add_events(random, values, onsets, length, 30.0, 4)
    return Series(table(values), (lost - 20, lost + length + 20))


def longer_checkpoint(random: Random) -> Series:
    """Return a job of which a checkpoint takes five times as long."""
    values, onsets, length = _checkpoints(random)
    slow = onsets[int(random.integers(3, len(onsets) - 3))]
    add_events(random, values, onsets, length, 30.0, 4, slow)
    return Series(table(values), (slow, slow + 5 * length + 5))


def fault_beside_checkpoints(random: Random) -> Series:
    """Return a job with checkpoints and a fault between two of them."""
    values, onsets, length = _checkpoints(random)
    add_events(random, values, onsets, length, 30.0, 4)
    after = onsets[int(random.integers(3, len(onsets) - 3))]
    first = after + int(0.5 * (onsets[1] - onsets[0]))
    add_events(random, values, [first], 30, 40.0, 4)
    return Series(table(values), (first, first + 45))


HEALTHY: dict[str, Callable[[Random], Series]] = {
    each.__name__: each
    for each in (
        periodic, two_trains, square_wave, weekly, weekly_backup, phases, warm_up, restarts,
        gaps, calm,
    )
}  # fmt: skip
FAULTY: dict[str, Callable[[Random], Series]] = {
    each.__name__: each
    for each in (
        shift, two_out, spike, missing_checkpoint, longer_checkpoint, fault_beside_checkpoints
    )
}  # fmt: skip

"""How far two sets of marked time agree: the paper's IoU, hits by count, hits by length.

Times are seconds; a set is its merged intervals (begin, end), in order and apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Interval = tuple[float, float]


@dataclass(frozen=True)
class Agreement:
    """``iou`` is common length over the length of either; ``by_count`` the share of the first
    set's intervals that meet any of the second's, ``by_length`` the share of its length that the
    second covers."""

    iou: float
    by_count: float
    by_length: float


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Those that touch or overlap as one."""
    out: list[Interval] = []
    for begin, end in sorted(intervals):
        if out and begin <= out[-1][1]:
            out[-1] = out[-1][0], max(out[-1][1], end)
        else:
            out.append((begin, end))
    return out


def agreement(first: Sequence[Interval], second: Sequence[Interval]) -> Agreement | None:
    """None where one of both is empty: there is nothing to agree on."""
    if not first or not second:
        return None
    common = sum(overlap(a, b) for a in first for b in second)
    first_length, other = length(first), length(second)
    hits = sum(any(overlap(a, b) > 0 for b in second) for a in first)
    return Agreement(
        common / (first_length + other - common), hits / len(first), common / first_length
    )


def overlap(first: Interval, other: Interval) -> float:
    return max(0.0, min(first[1], other[1]) - max(first[0], other[0]))


def length(intervals: Iterable[Interval]) -> float:
    return sum(end - begin for begin, end in intervals)


def turned(intervals: Sequence[Interval], by: float, total: float) -> list[Interval]:
    """The same intervals later by so much, those that pass ``total`` begun again at 0."""
    moved = []
    for begin, end in intervals:
        start = (begin + by) % total
        stop = start + end - begin
        moved += [(start, stop)] if stop <= total else [(start, total), (0.0, stop - total)]
    return merged(moved)

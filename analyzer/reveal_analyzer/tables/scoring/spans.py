"""Spans of abnormal samples: joined where they are near, without warm-ups, with lasting changes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Bools, Indices

Span = tuple[int, int]

_WARM_UP = 0.1  # share of the run: what lasts longer after a start is no warm-up
_SMOOTHED = 2  # samples before a start that show it, as scores are means
_SOON = 5  # samples after a start in which a warm-up shows


def runs_of(flags: Bools) -> tuple[Indices, Indices]:
    """Return the first row of each run of flags, and its end, which is excluded."""
    edges = np.flatnonzero(flags[1:] != flags[:-1]) + 1
    begin = [0] if flags[:1].any() else []
    end = [len(flags)] if flags[-1:].any() else []
    edges = np.concatenate([np.array(begin, np.intp), edges, np.array(end, np.intp)])
    return edges[::2], edges[1::2]


def spans_of(flags: Bools, gap: int) -> list[Span]:
    """Return spans (first, end) of flagged samples, end excluded.

    Spans at most ``gap`` samples apart are joined.
    """
    firsts, ends = runs_of(flags)
    if not firsts.size:
        return []
    begins = np.append(True, firsts[1:] - (ends[:-1] - 1) > gap)
    closes = np.append(begins[1:], True)
    return list(zip(firsts[begins].tolist(), ends[closes].tolist(), strict=True))


def warm_ups(flags: Bools, since: NDArray[np.intp], gap: int) -> list[Span]:
    """Return the spans that begin with a stretch and end soon: nothing is known before them.

    ``since`` (n,) counts the rows of a stretch before each row.  What is abnormal before a gap and
    after it is no warm-up.
    """
    starts = np.flatnonzero(since == 0)
    found = []
    for start, end in pairwise([*starts.tolist(), len(since)]):
        first = next(iter(spans_of(flags[start:end], gap)), None)
        before = max(0, start - _SMOOTHED)
        if first is None or first[0] > _SOON or flags[max(0, start - gap) : before].any():
            continue
        if first[1] <= _WARM_UP * len(flags) and 2 * first[1] <= end - start:
            found.append((before, start + first[1]))
    return found


def with_shifts(spans: Sequence[Span], firsts: Sequence[int], rows: int, gap: int) -> list[Span]:
    """Return spans with those of changes that last up to the last row, instead of their edges."""
    apart = [
        (first, end)
        for first, end in spans
        if not any(first - gap <= change < end for change in firsts)
    ]
    return sorted([*apart, *((first, rows) for first in firsts)])

"""Counter resets and wraps: increments of counters, and which of them are unknown.

This is the reference in numpy, used where there is no C library.  ``native/counter_increments.c``
does the same, and property tests compare the two.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from reveal_contract.wire import Bools, Ints


def counter_increments(rows: Ints, missing: Bools) -> tuple[Ints, Bools]:
    """Return counter increments: ``rows`` (n + 1, channels) -> steps and mask, (n, channels) each.

    An increment is missing where the first or the last reading is, or where it is negative: the
    counter was reset or wrapped at 32 bits.  That costs this one sample and never causes a spike.
    A wrap at 64 bits is a normal increment.  Readings that are missing between two others get equal
    parts of the increment between these, the larger ones first: their sum is known.
    """
    steps = rows[1:] - rows[:-1]
    unknown = missing[1:] | missing[:-1] | (steps < 0)
    for column in np.flatnonzero(missing[1:-1].any(axis=0)):
        _bridge(rows[:, column], missing[:, column], steps[:, column], unknown[:, column])
    return steps, unknown


def _bridge(row: Ints, missing: Bools, steps: Ints, unknown: Bools) -> None:
    """Distribute the increments over missing readings of one channel, in place."""
    known = np.flatnonzero(~missing)
    for (start, end), increment in zip(pairwise(known), np.diff(row[known]), strict=True):
        if end - start > 1 and increment >= 0:
            each, more = divmod(increment, end - start)
            steps[start:end] = each
            steps[start : start + more] += 1
            unknown[start:end] = False

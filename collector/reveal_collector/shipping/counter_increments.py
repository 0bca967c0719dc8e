"""Counter resets and wraps: increments of counters, and which of them are unknown.

``native/encode.c`` does the same for the encoder in C.
"""

from __future__ import annotations

from reveal_contract.wire import Bools, Ints


def counter_increments(rows: Ints, missing: Bools) -> tuple[Ints, Bools]:
    """Return counter increments: ``rows`` (n + 1, channels) -> steps and mask, (n, channels) each.

    An increment is missing where one of its ends is, or where it is negative: the counter was reset
    or wrapped at 32 bits.  That costs this one sample and never causes a spike.  A wrap at 64 bits
    is a normal increment.
    """
    steps = rows[1:] - rows[:-1]
    return steps, missing[1:] | missing[:-1] | (steps < 0)

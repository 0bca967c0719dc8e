"""What the thread that asks NVML leaves its answers on.

A board is replaced as a whole: who reads one never waits for the driver, and a driver that hangs
shows as a board that grows old.
"""

from __future__ import annotations

from typing import NamedTuple

from reveal_contract.channels import Channel

STALE_NS = 3_000_000_000


class Board(NamedTuple):
    """Columns and their last values; ``at_ns`` on the monotonic clock."""

    keys: tuple[tuple[str, str], ...]
    channels: tuple[Channel, ...]
    values: tuple[int | None, ...]
    at_ns: int


EMPTY = Board((), (), (), 0)
QUICK, STATE, SUBJECTS = "quick", "state", "subjects"

"""Snapshots of GPU values that the polling thread hands to the sources.

A snapshot is replaced as a whole, so a reader never waits for the driver.  If the driver hangs,
the snapshot gets old.
"""

from __future__ import annotations

from typing import NamedTuple

from reveal_contract.channels import Channel

STALE_NS = 3_000_000_000


class GpuSnapshot(NamedTuple):
    """Columns and their last values; ``taken_ns`` is on the monotonic clock."""

    keys: tuple[tuple[str, str], ...]
    channels: tuple[Channel, ...]
    values: tuple[int | None, ...]
    taken_ns: int


EMPTY = GpuSnapshot((), (), (), 0)
QUICK, STATE, SUBJECTS = "quick", "state", "subjects"

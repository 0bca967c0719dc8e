"""``/proc/diskstats``: requests, sectors and times of each block device (kernel: iostats.rst).

14 columns until 4.17, 18 with discards, 20 with flushes (5.5).  Times are 32-bit milliseconds
and wrap; ``busy_time`` saturates where requests are served in parallel.  Partitions are left
out.  Device-mapper, md and loop devices repeat the I/O of what lies below them.
"""

from __future__ import annotations

import re
from pathlib import Path

from reveal_collector.source import Roots, Source
from reveal_collector.textfile import Layout, TokenSource, channel, is_number, rows
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_SECTOR, _MS = 512.0, 1e6
FIELDS: tuple[tuple[str, float], ...] = (
    ("reads", 1), ("read_merges", 1), ("read_bytes", _SECTOR), ("read_time", _MS),
    ("writes", 1), ("write_merges", 1), ("write_bytes", _SECTOR), ("write_time", _MS),
    ("in_flight", 1), ("busy_time", _MS), ("queue_time", _MS),
    ("discards", 1), ("discard_merges", 1), ("discard_bytes", _SECTOR), ("discard_time", _MS),
    ("flushes", 1), ("flush_time", _MS),
)  # fmt: skip
_FIRST = 3  # after major, minor and name
_LEAST = _FIRST + 11
# there by the dozen and mostly unused: channels only once they did I/O
_SPARE = re.compile(r"(loop|ram|zram|sr|fd|nbd)\d+\Z")
# what a partition is called, where sysfs cannot be asked
_PARTITION = re.compile(r"((sd|vd|hd|xvd)[a-z]+|(nvme\d+n|mmcblk|nbd|loop|md)\d+p)\d+\Z")


def sources(roots: Roots) -> list[Source]:
    block = roots.sys / "block"

    def learn(text: str) -> Layout:
        return layout(text, block)

    return [TokenSource("diskstats", Lane.FAST, roots.proc / "diskstats", learn)]


def layout(text: str, block: Path) -> Layout:
    """The columns of each whole disk; of an unused spare device only what shows its first use."""
    columns: list[tuple[int, Channel | None]] = []
    for start, tokens in rows(text):
        if len(tokens) < _LEAST or not all(map(is_number, tokens[_FIRST:])):
            continue
        disk = tokens[2]
        if _SPARE.match(disk) and not any(map(int, tokens[_FIRST:])):
            columns += [(start + _FIRST, None), (start + _FIRST + 4, None)]  # reads, writes
        elif not is_partition(disk, block):
            columns += [
                (start + at, channel(f"storage.disk.{field}", disk, scale))
                for at, (field, scale) in enumerate(FIELDS[: len(tokens) - _FIRST], _FIRST)
            ]
    return columns


def is_partition(name: str, block: Path) -> bool:
    """Whether the device is part of a disk: sysfs lists only whole ones; else by its name."""
    if block.is_dir():
        return not (block / name.replace("/", "!")).exists()
    return _PARTITION.match(name) is not None

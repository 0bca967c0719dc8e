"""Compressed memory disks (zram): stored data, memory used, and failures.

Kernel: Documentation/admin-guide/blockdev/zram.rst.  Later kernels append columns: ``mm_stat``
has 7 to 9.  ``bd_stat`` exists only with a backing device and counts units of 4 KiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.plan import TokenPlan
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import AttributeFile, AttributeSource, entries
from reveal_collector.readers.textfile import channel, is_number
from reveal_contract.metric import Lane

_DEVICE = re.compile(r"zram\d+\Z")
_UNIT = 4096.0
_FILES: dict[str, tuple[tuple[str, float], ...]] = {
    "mm_stat": (
        ("original", 1), ("compressed", 1), ("used", 1), ("limit", 1), ("used_maximum", 1),
        ("same_pages", 1), ("compacted_pages", 1), ("huge_pages", 1), ("huge_pages_total", 1),
    ),
    "io_stat": (
        ("failed_reads", 1), ("failed_writes", 1), ("invalid_requests", 1), ("notify_free", 1),
    ),
    "bd_stat": (("backing.used", _UNIT), ("backing.read", _UNIT), ("backing.written", _UNIT)),
}  # fmt: skip


def sources(roots: Roots) -> list[Source]:
    block = roots.sys / "block"
    absent = Unsupported("there is no zram device")
    return [
        AttributeSource(
            "zram", Lane.SLOW, lambda: _attribute_files(block), lambda: zram_devices(block), absent
        )
    ]


def zram_devices(block: Path) -> list[str]:
    """Return the zram devices under ``/sys/block``."""
    return [name for name in entries(block)[0] if _DEVICE.match(name)]


def _attribute_files(block: Path) -> Iterator[AttributeFile]:
    for name in zram_devices(block):
        for file, fields in _FILES.items():
            path = block / name / file
            try:
                width = min(len(path.read_bytes().split()), len(fields))
            except OSError:
                continue
            channels = tuple(
                channel(f"memory.zram.{field}", name, scale) for field, scale in fields[:width]
            )
            yield AttributeFile(
                path, channels, partial(numbers, width=width), partial(_token_plan, width=width)
            )


def numbers(data: bytes, width: int) -> list[int]:
    """Return the first ``width`` numbers of a line; raises ``ValueError`` if there are fewer."""
    tokens = data.decode("ascii", "replace").split()[:width]
    if len(tokens) < width or not all(map(is_number, tokens)):
        raise ValueError(f"{width} numbers are expected, not {data[:40]!r}")
    return [int(token) for token in tokens]


def _token_plan(data: bytes, width: int) -> TokenPlan:
    return TokenPlan(len(data.split()), (), tuple(range(width)))

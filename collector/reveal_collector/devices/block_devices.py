"""Layers of block devices: kernel ABI/testing/sysfs-block, ``slaves``.

A request to a device-mapper, md or bcache device becomes requests to the devices below it, which
are counted there again.  A request to a loop device becomes requests to the file system of its
file; the kernel does not list them below each other.
"""

from __future__ import annotations

import os
from pathlib import Path

from reveal_collector.readers.sysfs_attributes import entries, read_text

_LOOP_MAJOR = "7"  # kernel: admin-guide/devices.txt


def is_stacked(sys: Path, number: str) -> bool:
    """Return whether the device ``MAJOR:MINOR`` passes its requests on to other devices."""
    if number.partition(":")[0] == _LOOP_MAJOR:
        return True
    folder = sys / "dev/block" / number
    if not folder.exists():  # a recording, or a device that was removed
        block = sys / "block"
        named = (block / name for name in entries(block)[0])
        folder = next((path for path in named if read_text(path / "dev") == number), folder)
    try:
        return bool(os.listdir(folder / "slaves"))  # noqa: PTH208 - Path.iterdir is slower
    except OSError:
        return False

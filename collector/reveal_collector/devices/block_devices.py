"""Layers of block devices: kernel ABI/testing/sysfs-block, ``slaves``.

A request to a device-mapper, md or bcache device becomes requests to the devices below it, which
are counted there again.
"""

from __future__ import annotations

import os
from pathlib import Path

from reveal_collector.readers.sysfs_attributes import entries, read_text


def is_stacked(sys: Path, number: str) -> bool:
    """Return whether the device ``MAJOR:MINOR`` passes its requests on to other devices."""
    folder = sys / "dev/block" / number
    if not folder.exists():  # a recording, or a device that was removed
        block = sys / "block"
        named = (block / name for name in entries(block)[0])
        folder = next((path for path in named if read_text(path / "dev") == number), folder)
    try:
        return bool(os.listdir(folder / "slaves"))  # noqa: PTH208 - Path.iterdir is slower
    except OSError:
        return False

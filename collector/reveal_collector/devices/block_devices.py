"""Layers of block devices: kernel ABI/testing/sysfs-block, ``slaves`` and ``holders``.

A request to a device-mapper, md or bcache device becomes requests to the devices below it, which
are counted there again.  A request to a loop device becomes requests to the file system of its
file; the kernel does not list them below each other.

Arrays of RAID 4, 5 and 6 (kernel: admin-guide/md.rst) are an exception: a thread of the kernel
writes to their disks, so that only the line of the array says who wrote.  If their disks are used
for nothing else, the array counts, and its disks do not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from reveal_collector.readers.sysfs_attributes import entries, read_text

_LOOP_MAJOR = "7"  # kernel: admin-guide/devices.txt
_PARITY_LEVELS = ("raid4", "raid5", "raid6")
_DEEPEST = 8  # layers that are followed


def is_repeated(sys: Path, number: str) -> bool:
    """Return whether the requests of the device ``MAJOR:MINOR`` are counted on others as well."""
    if number.partition(":")[0] == _LOOP_MAJOR:
        return True
    block = sys / "block"
    folder = sys / "dev/block" / number
    if not folder.exists():  # a recording, or a device that was removed
        named = (block / name for name in entries(block)[0])
        folder = next((path for path in named if read_text(path / "dev") == number), folder)
    if _names(folder / "slaves"):
        return not _counts_itself(block, folder)
    return _is_part_of_array(block, folder)


def _counts_itself(block: Path, folder: Path) -> bool:
    """Return whether a device is an array with parity, and each of its disks is part of one."""
    if not _has_parity(folder):
        return False
    below = [_disk_of(block, name) for name in _names(folder / "slaves")]
    return all(disk is not None and _is_part_of_array(block, disk) for disk in below)


def _is_part_of_array(block: Path, folder: Path, depth: int = 0) -> bool:
    """Return whether all that uses a device, or each of its partitions, is an array with parity."""
    if depth > _DEEPEST:
        return False
    parts = list(_partitions(folder)) or [folder]
    users = [_names(part / "holders") for part in parts]
    return all(users) and all(
        _has_parity(block / name) or _is_part_of_array(block, block / name, depth + 1)
        for names in users
        for name in names
    )


def _has_parity(folder: Path) -> bool:
    return read_text(folder / "md/level") in _PARITY_LEVELS


def _partitions(folder: Path) -> Iterator[Path]:
    return (folder / name for name in _names(folder) if (folder / name / "partition").exists())


def _disk_of(block: Path, name: str) -> Path | None:
    """Return the folder of a device, or of the disk whose partition it is."""
    if (block / name).exists():
        return block / name
    disks = (block / each for each in _names(block))
    return next((disk for disk in disks if (disk / name).exists()), None)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - Path.iterdir is slower
    except OSError:
        return []

"""Disks that repeat the I/O of others, by the names that their drivers give them."""

from __future__ import annotations

import re
from collections.abc import Iterable

# device-mapper (LVM, dm-crypt, multipath), software RAID, bcache, DRBD, files as disks, ZFS volumes
_UPPER = re.compile(r"(dm-\d+|md(\d+|[_/].+)|bcache\d+|drbd\d+|loop\d+|zd\d+)\Z")
# The paths nvme0c1n1 and nvme0c2n1 belong to the disk nvme0n1.  Older kernels count the I/O in the
# paths only.
_NVME_PATH = re.compile(r"(nvme\d+)c\d+(n\d+)\Z")


def lowest_disks(names: Iterable[str]) -> list[str]:
    """Return the disks whose requests no other disk of ``names`` counts again.

    Where none of the lower disks is known, the upper ones are all there is.
    """
    disks = list(names)
    above_paths = {path[1] + path[2] for disk in disks if (path := _NVME_PATH.match(disk))}
    lowest = [disk for disk in disks if not _UPPER.match(disk) and disk not in above_paths]
    return lowest or disks

"""``/proc/swaps``: use of each swap device or file.

Kernel: mm/swapfile.c.  Sizes are in units of 1024 bytes.  Blanks of a name are octal escapes, and
a file that was removed while in use is followed by the word ``(deleted)``.  Swap can be enabled
and disabled while the host runs; without swap the source has no columns.
"""

from __future__ import annotations

from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import SnapshotSource
from reveal_collector.readers.textfile import channel, decoded, is_number, rows
from reveal_contract.channels import Channel

_KIB = 1024.0
_NUMBERS = 3  # size, used, priority: the last columns of each row


def sources(roots: Roots) -> list[Source]:
    path = roots.proc / "swaps"
    return [SnapshotSource("swaps", lambda: usage(decoded(path.read_bytes())))]


def usage(text: str) -> dict[Channel, int | None]:
    """Return the columns of ``/proc/swaps``; skip the header and incomplete rows."""
    columns: dict[Channel, int | None] = {}
    for _, tokens in rows(text):
        numbers = tokens[-_NUMBERS:]
        if len(tokens) < _NUMBERS + 2 or not all(map(is_number, numbers)):
            continue
        size, used, priority = map(int, numbers)
        device = tokens[0].replace("\\040", " ")
        columns[channel("memory.swap.size", device, _KIB)] = size
        columns[channel("memory.swap.used", device, _KIB)] = used
        columns[channel("memory.swap.priority", device)] = priority
    return columns

"""``/proc/swaps``: use of each swap device or file.

Kernel: mm/swapfile.c.  Sizes are in units of 1024 bytes.  Blanks of a name are octal escapes, and
a file that was removed while in use is followed by the word ``(deleted)``.  Swap can be enabled
and disabled while the host runs; without swap the source has no columns.
"""

from __future__ import annotations

from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import Snapshot, SnapshotSource
from reveal_collector.readers.textfile import channel, decoded, is_number, rows, unfit_lines
from reveal_contract.channels import Channel

_KIB = 1024.0
_NUMBERS = 3  # size, used, priority: the last columns of each row


def sources(roots: Roots) -> list[Source]:
    path = roots.proc / "swaps"

    def read() -> Snapshot:
        columns, unfit = usage(decoded(path.read_bytes()))
        return Snapshot(columns, unfit_lines("swaps", path, unfit))

    return [SnapshotSource("swaps", read)]


def usage(text: str) -> tuple[dict[Channel, int | None], list[str]]:
    """Return the columns of ``/proc/swaps``, and the names in rows that have another form."""
    columns: dict[Channel, int | None] = {}
    unfit: list[str] = []
    for start, tokens in rows(text):
        numbers = tokens[-_NUMBERS:]
        if len(tokens) < _NUMBERS + 2 or not all(map(is_number, numbers)):
            unfit += tokens[:1] if start else ()  # the first row is the header
            continue
        size, used, priority = map(int, numbers)
        device = tokens[0].replace("\\040", " ")
        columns[channel("memory.swap.size", device, _KIB)] = size
        columns[channel("memory.swap.used", device, _KIB)] = used
        columns[channel("memory.swap.priority", device)] = priority
    return columns, unfit

"""``/proc/buddyinfo``: free memory of each zone, and how much of it is in large blocks.

A zone with much free memory and few blocks of order 9 (2 MiB with 4 KiB pages) is fragmented:
huge pages need compaction there.
"""

from __future__ import annotations

import os

from reveal_collector.readers.plan import Columns
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import (
    ColumnSet,
    Layout,
    TokenSource,
    channel,
    is_number,
    rows,
)
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_FIRST_COUNT = 4  # after "Node 0, zone Normal"
_LARGE_ORDER = 9


def sources(roots: Roots) -> list[Source]:
    path = roots.proc / "buddyinfo"
    return [TokenSource("buddyinfo", Lane.RARE, path, learn, arrange=by_zone)]


def learn(text: str) -> Layout:
    """Map the blocks of each order; their instance is ``ZONE/NODE/ORDER`` until they are summed."""
    layout = []
    for start, tokens in rows(text):
        orders = tokens[_FIRST_COUNT:]
        if tokens[0] == "Node" and orders and all(map(is_number, orders)):
            zone = f"{tokens[3]}/{tokens[1].rstrip(',')}"
            layout += [
                (start + index, channel("memory.buddy.free", f"{zone}/{order}"))
                for order, index in enumerate(range(_FIRST_COUNT, len(tokens)))
            ]
    return layout


def by_zone(channels: tuple[Channel, ...]) -> ColumnSet:
    """Return two sums for each zone: free pages, and free pages in large blocks."""
    zones: dict[str, list[tuple[int, int]]] = {}
    for index, each in enumerate(channels):
        zone, _, order = each.instance.rpartition("/")
        zones.setdefault(zone, []).append((index, int(order)))
    page = float(os.sysconf("SC_PAGE_SIZE"))
    sums: list[tuple[int, ...]] = []
    columns: list[Channel] = []
    for zone, orders in zones.items():
        sums.append(tuple(index for index, _ in orders))
        sums.append(tuple(index for index, order in orders if order >= _LARGE_ORDER))
        columns.append(channel("memory.buddy.free", zone, page))
        columns.append(channel("memory.buddy.free_large", zone, page))
    pages = tuple(1 << int(each.instance.rpartition("/")[2]) for each in channels)
    return ColumnSet(tuple(columns), Columns(tuple(sums), weights=pages))

"""``/proc/buddyinfo``: free memory of each zone, and how much of it lies in large blocks.

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

_FIRST = 4  # after "Node 0, zone Normal"
_LARGE_ORDER = 9


def sources(roots: Roots) -> list[Source]:
    path = roots.proc / "buddyinfo"
    return [TokenSource("buddyinfo", Lane.RARE, path, learn, arrange=by_zone)]


def learn(text: str) -> Layout:
    """Blocks of each order, the instance ``ZONE/NODE/ORDER`` until they are summed."""
    layout = []
    for start, tokens in rows(text):
        orders = tokens[_FIRST:]
        if tokens[0] == "Node" and orders and all(map(is_number, orders)):
            zone = f"{tokens[3]}/{tokens[1].rstrip(',')}"
            layout += [
                (start + at, channel("memory.buddy.free", f"{zone}/{order}"))
                for order, at in enumerate(range(_FIRST, len(tokens)))
            ]
    return layout


def by_zone(channels: tuple[Channel, ...]) -> ColumnSet:
    """Two sums a zone: pages free, pages free in large blocks."""
    zones: dict[str, list[tuple[int, int]]] = {}
    for at, each in enumerate(channels):
        zone, _, order = each.instance.rpartition("/")
        zones.setdefault(zone, []).append((at, int(order)))
    page = float(os.sysconf("SC_PAGE_SIZE"))
    sums: list[tuple[int, ...]] = []
    shown: list[Channel] = []
    for zone, orders in zones.items():
        sums.append(tuple(at for at, _ in orders))
        sums.append(tuple(at for at, order in orders if order >= _LARGE_ORDER))
        shown.append(channel("memory.buddy.free", zone, page))
        shown.append(channel("memory.buddy.free_large", zone, page))
    pages = tuple(1 << int(each.instance.rpartition("/")[2]) for each in channels)
    return ColumnSet(tuple(shown), Columns(tuple(sums), weights=pages))

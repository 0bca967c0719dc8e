"""``/proc/buddyinfo``: free memory of each zone, and how much of it is in large blocks.

A zone with much free memory and few blocks of the size of a huge page is fragmented: huge pages
need compaction there.  Their order is 9 for 2 MiB with pages of 4 KiB, and 13 for 512 MiB with
pages of 64 KiB.
"""

from __future__ import annotations

from reveal_collector.readers.host_constants import host_constants, huge_page_order, table_order
from reveal_collector.readers.plan import Columns
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import (
    UNFIT,
    ColumnSet,
    Layout,
    LayoutList,
    TokenSource,
    channel,
    is_number,
    rows,
)
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_FIRST_COUNT = 4  # after "Node 0, zone Normal"


def sources(roots: Roots) -> list[Source]:
    def arrange(channels: tuple[Channel, ...]) -> ColumnSet:
        page = host_constants(roots).page
        return by_zone(channels, page, huge_page_order(roots, page))

    path = roots.proc / "buddyinfo"
    return [TokenSource("buddyinfo", Lane.RARE, path, learn, arrange=arrange)]


def learn(text: str) -> Layout:
    """Map the blocks of each order; their instance is ``ZONE/NODE/ORDER`` until they are summed."""
    layout: LayoutList = []
    for start, tokens in rows(text):
        orders = tokens[_FIRST_COUNT:]
        if tokens[0] != "Node" or not orders or not all(map(is_number, orders)):
            layout.append((start, UNFIT))
            continue
        zone = f"{tokens[3]}/{tokens[1].rstrip(',')}"
        layout += [
            (start + index, channel("memory.buddy.free", f"{zone}/{order}"))
            for order, index in enumerate(range(_FIRST_COUNT, len(tokens)))
        ]
    return layout


def by_zone(channels: tuple[Channel, ...], page: int, huge_order: int) -> ColumnSet:
    """Return two sums for each zone: free pages, and free pages in blocks for huge pages."""
    zones: dict[str, list[tuple[int, int]]] = {}
    for index, each in enumerate(channels):
        zone, _, order = each.instance.rpartition("/")
        zones.setdefault(zone, []).append((index, int(order)))
    sums: list[tuple[int, ...]] = []
    columns: list[Channel] = []
    for zone, orders in zones.items():
        sums.append(tuple(index for index, _ in orders))
        large = _existing_order(page, huge_order, max(order for _, order in orders))
        sums.append(tuple(index for index, order in orders if order >= large))
        columns.append(channel("memory.buddy.free", zone, float(page)))
        columns.append(channel("memory.buddy.free_large", zone, float(page)))
    pages = tuple(1 << int(each.instance.rpartition("/")[2]) for each in channels)
    return ColumnSet(tuple(columns), Columns(tuple(sums), weights=pages))


def _existing_order(page: int, huge_order: int, largest: int) -> int:
    """Return the order of huge pages, limited to those of the allocator.

    Pages of 1 GiB are never taken from it: with these as the default, smaller ones are what a
    fragmented zone cannot give.
    """
    return next((order for order in (huge_order, table_order(page)) if order <= largest), largest)

"""``/proc/buddyinfo``: free memory of each zone, and how much of it lies in large blocks.

A zone with much free memory and few blocks of order 9 (2 MiB with 4 KiB pages) is fragmented:
huge pages need compaction there.
"""

from __future__ import annotations

import os

from reveal_collector.source import Roots, Source
from reveal_collector.textfile import Layout, TokenSource, channel, is_number, rows
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_FIRST = 4  # after "Node 0, zone Normal"
_LARGE_ORDER = 9


def sources(roots: Roots) -> list[Source]:
    return [_Buddy("buddyinfo", Lane.RARE, roots.proc / "buddyinfo", learn)]


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


class _Buddy(TokenSource):
    """Two sums a zone: pages free, pages free in large blocks."""

    _orders: tuple[tuple[int, ...], ...] = ()

    def parse(self, tokens: tuple[bytes, ...]) -> list[int | None]:
        values: list[int | None] = []
        blocks = iter(tokens)
        for orders in self._orders:
            pages = [int(next(blocks)) << order for order in orders]
            values += [sum(pages), sum(pages[_LARGE_ORDER:])]
        return values

    def arrange(self, channels: tuple[Channel, ...]) -> tuple[Channel, ...]:
        zones: dict[str, list[int]] = {}
        for each in channels:
            zone, _, order = each.instance.rpartition("/")
            zones.setdefault(zone, []).append(int(order))
        self._orders = tuple(map(tuple, zones.values()))
        page = float(os.sysconf("SC_PAGE_SIZE"))
        return tuple(
            channel(metric, zone, page)
            for zone in zones
            for metric in ("memory.buddy.free", "memory.buddy.free_large")
        )

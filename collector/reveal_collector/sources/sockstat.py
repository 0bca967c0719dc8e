"""``/proc/net/sockstat`` and ``sockstat6``: sockets by protocol and the memory that they use.

``mem`` is in pages, ``memory`` of fragments in bytes (net/ipv4/proc.c).
"""

from __future__ import annotations

from functools import partial

from reveal_collector.readers.host_constants import host_constants
from reveal_collector.readers.net_paths import net_file
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import (
    UNFIT,
    Layout,
    LayoutList,
    TokenSource,
    channel,
    is_number,
    rows,
)
from reveal_contract.metric import Lane
from reveal_contract.names import snake


def sources(roots: Roots) -> list[Source]:
    def learn_here(text: str) -> Layout:
        return learn(text, host_constants(roots).page)

    file = partial(net_file, roots)
    return [
        TokenSource("sockstat", Lane.SLOW, file("sockstat"), learn_here),
        TokenSource("sockstat6", Lane.SLOW, file("sockstat6"), learn_here, "enable IPv6"),
    ]


def learn(text: str, page: int) -> Layout:
    """Map ``TCP: inuse 1 orphan 0``: a protocol, then pairs of name and value."""
    layout: LayoutList = []
    for start, tokens in rows(text):
        protocol = snake(tokens[0])
        for index in range(2, len(tokens), 2):
            field = snake(tokens[index - 1])
            if protocol and field and is_number(tokens[index]):
                scale = float(page) if field == "mem" else 1.0
                metric = f"network.sockets.{protocol}.{'memory' if field == 'mem' else field}"
                layout.append((start + index, channel(metric, scale=scale)))
            elif protocol and field:
                layout.append((start, UNFIT))
    return layout

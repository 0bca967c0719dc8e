"""``/proc/net/sockstat`` and ``sockstat6``: sockets by protocol and the memory that they use.

``mem`` is in pages, ``memory`` of fragments in bytes (net/ipv4/proc.c).
"""

from __future__ import annotations

import os

from reveal_collector.readers.net_paths import net_file
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import Layout, TokenSource, channel, is_number, rows
from reveal_contract.metric import Lane
from reveal_contract.names import snake


def sources(roots: Roots) -> list[Source]:
    return [
        TokenSource("sockstat", Lane.SLOW, net_file(roots, "sockstat"), learn),
        TokenSource("sockstat6", Lane.SLOW, net_file(roots, "sockstat6"), learn, "enable IPv6"),
    ]


def learn(text: str) -> Layout:
    """Map ``TCP: inuse 1 orphan 0``: a protocol, then pairs of name and value."""
    layout = []
    for start, tokens in rows(text):
        protocol = snake(tokens[0])
        for index in range(2, len(tokens), 2):
            field = snake(tokens[index - 1])
            if protocol and field and is_number(tokens[index]):
                scale = float(os.sysconf("SC_PAGE_SIZE")) if field == "mem" else 1.0
                metric = f"network.sockets.{protocol}.{'memory' if field == 'mem' else field}"
                layout.append((start + index, channel(metric, scale=scale)))
    return layout

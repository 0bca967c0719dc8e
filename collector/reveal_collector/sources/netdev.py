"""``/proc/net/dev``: traffic of each network interface.

The counters start again at 0 when a driver is reloaded.  An interface gets its columns with its
first packet.
"""

from __future__ import annotations

from reveal_collector.readers.net_paths import CARRIED, net_file
from reveal_collector.readers.netdev import FIELDS
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import Layout, TokenSource, channel, is_number, rows
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_RECEIVED, _SENT = 2, 10  # packets, after the name


def sources(roots: Roots) -> list[Source]:
    return [TokenSource("netdev", Lane.FAST, net_file(roots, "dev"), learn).resting(CARRIED)]


def learn(text: str) -> Layout:
    columns: list[tuple[int, Channel | None]] = []
    for start, tokens in rows(text):
        name, values = tokens[0].removesuffix(":"), tokens[1:]
        if name == tokens[0] or len(values) != len(FIELDS) or not all(map(is_number, values)):
            continue  # the two header lines
        if tokens[_RECEIVED] == tokens[_SENT] == "0":
            columns += [(start + _RECEIVED, None), (start + _SENT, None)]
        else:
            columns += [
                (start + index, channel(f"network.nic.{field}", name))
                for index, field in enumerate(FIELDS, 1)
            ]
    return columns

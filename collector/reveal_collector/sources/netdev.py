"""``/proc/net/dev``: traffic of each network interface.

The counters start again at 0 when a driver is reloaded.  An interface gets its columns with its
first packet.
"""

from __future__ import annotations

from reveal_collector.readers.net_paths import CARRIED, net_file
from reveal_collector.readers.netdev import FIELDS, form_of, interfaces
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import UNFIT, Layout, LayoutList, TokenSource, channel
from reveal_contract.metric import Lane

_RECEIVED, _SENT = FIELDS.index("rx_packets"), FIELDS.index("tx_packets")


def sources(roots: Roots) -> list[Source]:
    path = net_file(roots, "dev")
    return [TokenSource("netdev", Lane.FAST, path, learn, form=form_of).resting(CARRIED)]


def learn(text: str) -> Layout:
    columns: LayoutList = []
    for start, name, values in interfaces(text):
        columns.append((start, None if values else UNFIT))
        first = start + 1
        if not values:
            continue
        if values[_RECEIVED] == values[_SENT] == "0":
            columns += [(first + _RECEIVED, None), (first + _SENT, None)]
        else:
            columns += [
                (first + index, channel(f"network.nic.{field}", name))
                for index, field in enumerate(FIELDS)
            ]
    return columns

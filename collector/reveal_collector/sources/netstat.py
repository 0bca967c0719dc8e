"""``/proc/net/netstat``, ``snmp`` and ``snmp6``: counters of the network protocols.

The first two consist of pairs of lines, names and values.  The columns depend on the kernel, so
values are found by name and never by position.  RFC 1213, RFC 4293 and the kernel's
net/ipv4/proc.c define them.
"""

from __future__ import annotations

import re

from reveal_collector.readers.net_paths import COUNTED, net_file
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
from reveal_contract.catalogue import UnknownMetricError, find
from reveal_contract.metric import Lane
from reveal_contract.names import snake

# settings, not measurements
_LEFT_OUT = {
    "network.ip.forwarding", "network.ip.default_ttl", "network.tcp.rto_algorithm",
    "network.tcp.rto_min", "network.tcp.rto_max", "network.tcp.max_conn",
}  # fmt: skip
_IPV6_NAME = re.compile(r"([A-Za-z]+6)([A-Z]\w*)\Z")


def sources(roots: Roots) -> list[Source]:
    files = [
        TokenSource("netstat", Lane.FAST, net_file(roots, "netstat"), learn),
        TokenSource("snmp", Lane.FAST, net_file(roots, "snmp"), learn),
        TokenSource("snmp6", Lane.SLOW, net_file(roots, "snmp6"), learn_six, "enable IPv6"),
    ]
    return [source.resting(COUNTED) for source in files]


def learn(text: str) -> Layout:
    """Map pairs of lines that start with the same word: names, and numbers.

    Numbers without their names are unfit; names without their numbers have nothing to read.
    """
    layout: LayoutList = []
    names: list[str] = []
    for start, tokens in rows(text):
        if names and names[0] == tokens[0] and len(names) == len(tokens):
            layout += [
                (start + index, channel(metric))
                for index, (name, value) in enumerate(zip(names, tokens, strict=True))
                if index and is_number(value)
                if (metric := _metric(tokens[0], name)) not in _LEFT_OUT and _known(metric)
            ]
            names = []
        elif any(map(is_number, tokens)):
            layout.append((start, UNFIT))
        else:
            names = tokens
    return layout


def learn_six(text: str) -> Layout:
    """Map one name and one value per line: ``Ip6InReceives 1``."""
    layout: LayoutList = []
    for start, tokens in rows(text):
        if len(tokens) != 2 or not is_number(tokens[1]):
            layout.append((start, UNFIT))
        elif (named := _IPV6_NAME.match(tokens[0])) and _known(
            metric := _metric(named[1], named[2])
        ):
            layout.append((start + 1, channel(metric)))
    return layout


def _metric(protocol: str, name: str) -> str:
    return f"network.{snake(protocol)}.{snake(name)}"


def _known(metric: str) -> bool:
    """Return whether the catalogue has the metric; a newer kernel may count more."""
    try:
        find(metric)
    except UnknownMetricError:
        return False
    return True

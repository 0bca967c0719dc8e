"""``/proc/net/netstat``, ``snmp`` and ``snmp6``: what the protocols counted.

The first two come as pairs of lines, names and values; which columns there are depends on the
kernel, so they are paired by name and never by place.  RFC 1213, 4293 and the kernel's
net/ipv4/proc.c define them.
"""

from __future__ import annotations

import re

from reveal_collector.readers.net_paths import COUNTED, net_file
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import Layout, TokenSource, channel, is_number, rows
from reveal_contract.catalogue import UnknownMetricError, find
from reveal_contract.metric import Lane
from reveal_contract.names import snake

# settings, not measurements
_LEFT_OUT = {
    "network.ip.forwarding", "network.ip.default_ttl", "network.tcp.rto_algorithm",
    "network.tcp.rto_min", "network.tcp.rto_max", "network.tcp.max_conn",
}  # fmt: skip
_SIX = re.compile(r"([A-Za-z]+6)([A-Z]\w*)\Z")


def sources(roots: Roots) -> list[Source]:
    made = [
        TokenSource("netstat", Lane.FAST, net_file(roots, "netstat"), learn),
        TokenSource("snmp", Lane.FAST, net_file(roots, "snmp"), learn),
        TokenSource("snmp6", Lane.SLOW, net_file(roots, "snmp6"), learn_six, "IPv6 is off"),
    ]
    return [one.resting(COUNTED) for one in made]


def learn(text: str) -> Layout:
    """Pairs of lines that begin with the same word; a line without its pair is skipped."""
    layout = []
    names: list[str] = []
    for start, tokens in rows(text):
        if names and names[0] == tokens[0] and len(names) == len(tokens):
            layout += [
                (start + at, channel(metric))
                for at, (name, value) in enumerate(zip(names, tokens, strict=True))
                if at and is_number(value)
                if (metric := _metric(tokens[0], name)) not in _LEFT_OUT and _known(metric)
            ]
            names = []
        else:
            names = tokens
    return layout


def learn_six(text: str) -> Layout:
    """One name and one value a line: ``Ip6InReceives 1``."""
    return [
        (start + 1, channel(metric))
        for start, tokens in rows(text)
        if len(tokens) == 2 and is_number(tokens[1])
        if (named := _SIX.match(tokens[0])) and _known(metric := _metric(named[1], named[2]))
    ]


def _metric(protocol: str, name: str) -> str:
    return f"network.{snake(protocol)}.{snake(name)}"


def _known(metric: str) -> bool:
    """Whether the catalogue has the protocol; a younger kernel may count more of them."""
    try:
        find(metric)
    except UnknownMetricError:
        return False
    return True
